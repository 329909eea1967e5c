// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "classify/device_tables.h"

#include <span>

namespace penstock::classify {

DeviceTables::DeviceTables(const Ruleset& rules, const Classifier& classifier) : rules_(view_of(rules)) {
  rules_.entries = copy_of(rules.entries);
  if (const BitVectorTables* const tables = classifier.bitvectors()) {
    engine_ = bitvectors(*tables);
  } else if (const RfcTables* const phases = classifier.rfc()) {
    engine_ = rfc(*phases);
  } else {
    engine_ = linear(rules);
  }
}

/// Null if there is nothing to copy.
template <typename T>
const T* DeviceTables::copy_of(const std::vector<T>& host) {
  copies_.emplace_back(std::as_bytes(std::span(host)));
  return reinterpret_cast<const T*>(copies_.back().data());
}

Ipv4View DeviceTables::copy_of(const Ipv4Table& table) {
  return {copy_of(table.top), copy_of(table.middle), copy_of(table.records)};
}

Ipv6View DeviceTables::copy_of(const Ipv6Table& table) {
  return {copy_of(table.first), copy_of(table.starts), copy_of(table.records)};
}

SmallView DeviceTables::copy_of(const SmallTable& table) {
  return {{copy_of(table.pages), copy_of(table.records)}, table.use};
}

LinearView DeviceTables::linear(const Ruleset& rules) {
  return {rules_.entries, copy_of(rules.conditions), copy_of(rules.port_ranges), copy_of(rules.ranges6),
          static_cast<std::uint32_t>(rules.entries.size())};
}

BitVectorView DeviceTables::bitvectors(const BitVectorTables& tables) {
  BitVectorView view = tables.view(rules_.entries);
  view.source4 = copy_of(tables.source4);
  view.destination4 = copy_of(tables.destination4);
  view.source6 = copy_of(tables.source6);
  view.destination6 = copy_of(tables.destination6);
  view.kind = copy_of(tables.kind);
  view.destination_port = copy_of(tables.destination_port);
  view.source_port = copy_of(tables.source_port);
  view.place = copy_of(tables.place);
  view.connection = copy_of(tables.connection);
  view.combined = copy_of(tables.combined);
  view.words = copy_of(tables.words);
  view.blocks = copy_of(tables.blocks);
  return view;
}

RfcView DeviceTables::rfc(const RfcTables& tables) {
  RfcView view = tables.view();
  view.memory.base = reinterpret_cast<const std::byte*>(copy_of(tables.memory));
  return view;
}

}  // namespace penstock::classify
