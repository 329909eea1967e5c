// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Longest-prefix-match tables for the router and the CLI: build, look up, update in place.
//
// A table owns its arrays and the routes it was made from; copies are deep. Readers only see it as const: an update is
// applied to a copy that no one reads, and the two are swapped. Updates touch only the entries in the range of the
// changed prefix, and are deterministic: equal tables stay equal under equal updates.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "base/error.h"
#include "base/ip_address.h"
#include "nf/router/multibit_build.h"
#include "nf/router/route_entry.h"

namespace penstock::router {

enum class Fib4Engine : std::uint8_t { kDir24, kTrie1, kTrie4 };  // in the order of Fib4's variants

/// "dir24", "trie1", "trie4".
[[nodiscard]] std::string_view to_string(Fib4Engine engine) noexcept;
[[nodiscard]] std::optional<Fib4Engine> parse_fib4_engine(std::string_view name) noexcept;

/// For code that is instantiated for each engine: use std::visit once, outside the packet loop.
using Fib4View = std::variant<Dir24View, Trie1View, Trie4View>;

class Fib4 {
 public:
  /// MultibitTable documents the operations.
  [[nodiscard]] static Result<Fib4> build(Fib4Engine engine, std::span<const Route4> routes, FibLimit limit = {});
  [[nodiscard]] Result<void> insert(const Route4& route);
  bool erase(const Ipv4Prefix& prefix);

  [[nodiscard]] std::uint32_t lookup(Ipv4Address address) const noexcept;
  [[nodiscard]] std::uint32_t lookup_entry(Ipv4Address address) const noexcept;
  [[nodiscard]] std::optional<std::uint32_t> value(const Ipv4Prefix& prefix) const noexcept;
  template <typename Use>
  void for_each(Use&& use) const {
    std::visit([&](const auto& table) { table.for_each(use); }, table_);
  }
  void lookup_bulk(std::span<const Ipv4Address> addresses, std::span<std::uint32_t> values) const noexcept;

  [[nodiscard]] Fib4View view() const noexcept;
  [[nodiscard]] Fib4Engine engine() const noexcept { return static_cast<Fib4Engine>(table_.index()); }
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

 private:
  using Table = std::variant<MultibitTable<Dir24View>, MultibitTable<Trie1View>, MultibitTable<Trie4View>>;
  explicit Fib4(Table table) : table_(std::move(table)) {}

  Table table_;
};

/// The IPv6 table: one engine, the same operations.
using Fib6 = MultibitTable<Trie6View>;
using Fib6View = Trie6View;

}  // namespace penstock::router
