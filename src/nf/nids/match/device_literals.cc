// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/match/device_literals.h"

#include <span>

namespace penstock::nids {

DeviceLiterals::DeviceLiterals(const ScanTables& tables) {
  engine_ = std::visit([this](const auto& engine) { return copy_of(engine); }, tables.engine);
}

DeviceLiterals::DeviceLiterals(const AutomatonSpans& automaton) : engine_(copy_of(automaton)) {}
DeviceLiterals::DeviceLiterals(const FilterSpans& filter) : engine_(copy_of(filter)) {}

/// Null if there is nothing to copy.
template <typename T>
const T* DeviceLiterals::copy_of(std::span<const T> host) {
  copies_.emplace_back(std::as_bytes(host));
  return reinterpret_cast<const T*>(copies_.back().data());
}

template <typename Entry>
AhoCorasickView<Entry> DeviceLiterals::copy_of(const AutomatonSpans& automaton, std::span<const Entry> rows) {
  auto view = automaton.view(rows);
  view.class_of = copy_of(automaton.class_of);
  view.next = copy_of(rows);
  view.accepting = copy_of(automaton.accepting);
  view.outputs = copy_of(automaton.outputs);
  view.texts = copy_of(automaton.texts);
  return view;
}

DeviceLiterals::EngineView DeviceLiterals::copy_of(const AhoCorasickTables& tables) {
  const AutomatonSpans automaton = spans_of(tables);
  return copy_of(automaton, automaton.narrow);
}

DeviceLiterals::EngineView DeviceLiterals::copy_of(const PacketAutomaton& automaton) {
  return copy_of(spans_of(automaton.tables));
}

DeviceLiterals::EngineView DeviceLiterals::copy_of(const AutomatonSpans& automaton) {
  if (automaton.is_narrow()) return PacketAutomatonView<std::uint16_t>{copy_of(automaton, automaton.narrow)};
  return PacketAutomatonView<std::uint32_t>{copy_of(automaton, automaton.wide)};
}

DeviceLiterals::EngineView DeviceLiterals::copy_of(const FilterSpans& filter) {
  HashedFilterView view = filter.view();
  view.bits.quads = copy_of(filter.quad_bits);
  view.bits.pairs = copy_of(filter.pair_bits);
  view.bits.keys = copy_of(filter.key_bits);
  view.quad_slots.slots = copy_of(filter.quad_slots);
  view.pair_slots.slots = copy_of(filter.pair_slots);
  view.entries = copy_of(filter.entries);
  view.rests = copy_of(filter.rests);
  return view;
}

}  // namespace penstock::nids
