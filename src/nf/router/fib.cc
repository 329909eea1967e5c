// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/fib.h"

#include <array>

namespace penstock::router {
namespace {

constexpr std::array<std::string_view, 3> kEngineNames = {"dir24", "trie1", "trie4"};

}  // namespace

std::string_view to_string(Fib4Engine engine) noexcept { return kEngineNames[static_cast<std::size_t>(engine)]; }

std::optional<Fib4Engine> parse_fib4_engine(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kEngineNames.size(); ++i) {
    if (kEngineNames[i] == name) return static_cast<Fib4Engine>(i);
  }
  return std::nullopt;
}

Result<Fib4> Fib4::build(Fib4Engine engine, std::span<const Route4> routes, FibLimit limit) {
  const auto wrapped = [](auto table) {
    return std::move(table).map([](auto built) { return Fib4(std::move(built)); });
  };
  switch (engine) {
    case Fib4Engine::kTrie1: return wrapped(MultibitTable<Trie1View>::build(routes, limit));
    case Fib4Engine::kTrie4: return wrapped(MultibitTable<Trie4View>::build(routes, limit));
    case Fib4Engine::kDir24: break;
  }
  return wrapped(MultibitTable<Dir24View>::build(routes, limit));
}

Result<void> Fib4::insert(const Route4& route) {
  return std::visit([&](auto& table) { return table.insert(route); }, table_);
}

bool Fib4::erase(const Ipv4Prefix& prefix) {
  return std::visit([&](auto& table) { return table.erase(prefix); }, table_);
}

std::uint32_t Fib4::lookup(Ipv4Address address) const noexcept {
  return std::visit([&](const auto& table) { return table.lookup(address); }, table_);
}

std::uint32_t Fib4::lookup_entry(Ipv4Address address) const noexcept {
  return std::visit([&](const auto& table) { return table.lookup_entry(address); }, table_);
}

std::optional<std::uint32_t> Fib4::value(const Ipv4Prefix& prefix) const noexcept {
  return std::visit([&](const auto& table) { return table.value(prefix); }, table_);
}

void Fib4::lookup_bulk(std::span<const Ipv4Address> addresses, std::span<std::uint32_t> values) const noexcept {
  std::visit([&](const auto& table) { table.lookup_bulk(addresses, values); }, table_);
}

Fib4View Fib4::view() const noexcept {
  return std::visit([](const auto& table) { return Fib4View(table.view()); }, table_);
}

std::size_t Fib4::size() const noexcept {
  return std::visit([](const auto& table) { return table.size(); }, table_);
}

std::size_t Fib4::memory_bytes() const noexcept {
  return std::visit([](const auto& table) { return table.memory_bytes(); }, table_);
}

}  // namespace penstock::router
