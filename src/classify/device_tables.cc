// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "classify/device_tables.h"

#include <numeric>

namespace penstock::classify {

DeviceTables::DeviceTables(const Ruleset& rules, const Classifier& classifier) : rules_(view_of(rules)) {
  if (const auto tables = spans_of(rules, classifier)) {
    copy(*tables);
  } else {
    rules_.entries = copy_of(std::span(rules.entries));
    engine_ = view(*classifier.rfc());
  }
}

DeviceTables::DeviceTables(const TableSpans& tables) { copy(tables); }

void DeviceTables::copy(const TableSpans& tables) {
  rules_ = tables.rules;
  rules_.entries = copy_of(tables.entries);
  entry_count_ = static_cast<std::uint32_t>(tables.entries.size());
  engine_ = std::visit([&](const auto& engine) { return EngineView(view(engine)); }, tables.engine);
}

std::size_t DeviceTables::bytes() const noexcept {
  return std::accumulate(copies_.begin(), copies_.end(), std::size_t{0},
                         [](std::size_t sum, const auto& copy) { return sum + copy.size_bytes(); });
}

/// Null if there is nothing to copy.
template <typename T>
const T* DeviceTables::copy_of(std::span<const T> host) {
  copies_.emplace_back(std::as_bytes(host));
  return reinterpret_cast<const T*>(copies_.back().data());
}

Ipv4View DeviceTables::copy_of(const Ipv4Spans& table) {
  return {copy_of(table.top), copy_of(table.middle), copy_of(table.records)};
}

Ipv6View DeviceTables::copy_of(const Ipv6Spans& table) {
  return {copy_of(table.first), copy_of(table.starts), copy_of(table.records)};
}

SmallView DeviceTables::copy_of(const SmallSpans& table) {
  return {{copy_of(table.pages), copy_of(table.records)}, table.use};
}

LinearView DeviceTables::view(const LinearSpans& tables) {
  return {rules_.entries, copy_of(tables.conditions), copy_of(tables.port_ranges), copy_of(tables.ranges6),
          entry_count_};
}

BitVectorView DeviceTables::view(const BitVectorSpans& tables) {
  return {copy_of(tables.source4),
          copy_of(tables.destination4),
          copy_of(tables.source6),
          copy_of(tables.destination6),
          copy_of(tables.kind),
          copy_of(tables.destination_port),
          copy_of(tables.source_port),
          copy_of(tables.place),
          copy_of(tables.connection),
          copy_of(tables.combined),
          tables.port_count,
          tables.summary_words,
          copy_of(tables.words),
          reinterpret_cast<const VectorBlock*>(copy_of(tables.block_words)),
          rules_.entries};
}

RfcView DeviceTables::view(const RfcTables& tables) {
  RfcView view = tables.view();
  view.memory.base = reinterpret_cast<const std::byte*>(copy_of(std::span(tables.memory)));
  return view;
}

}  // namespace penstock::classify
