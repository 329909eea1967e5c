// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/rule_order.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

namespace penstock::nids {

namespace {

bool of_hosts(TrackBy track) noexcept { return track == TrackBy::source || track == TrackBy::destination; }

/// 0: sets bits, 1: tests and sets, 2: tests, 3: neither.
unsigned rank_of(bool sets, bool asks) noexcept { return sets ? (asks ? 1 : 0) : (asks ? 2 : 3); }

using Key = std::tuple<Action, unsigned, unsigned, unsigned, unsigned, std::uint8_t>;

Key key_of(const Rule& rule) {
  enum Kind : std::uint8_t { flowbits, flowint, host_bits, pair_bits };
  std::array<bool, 4> asks{}, sets{};
  for (const StateMatch& match : rule.state_matches) {
    if (std::holds_alternative<FlowbitsMatch>(match)) asks[flowbits] = true;
    if (std::holds_alternative<FlowintMatch>(match)) asks[flowint] = true;
    if (const auto* const bits = std::get_if<XbitsMatch>(&match)) {
      asks[of_hosts(bits->track) ? host_bits : pair_bits] = true;
    }
  }
  for (const StateChange& change : rule.state_changes) {
    if (std::holds_alternative<FlowbitsChange>(change)) sets[flowbits] = true;
    if (std::holds_alternative<FlowintChange>(change)) sets[flowint] = true;
    if (const auto* const bits = std::get_if<XbitsChange>(&change)) {
      sets[of_hosts(bits->track) ? host_bits : pair_bits] = true;
    }
  }
  const auto rank = [&](Kind kind) { return rank_of(sets[kind], asks[kind]); };
  return {rule.action, rank(flowbits), rank(flowint), rank(host_bits), rank(pair_bits), rule.priority};
}

}  // namespace

std::vector<std::uint32_t> evaluation_order(std::span<const Rule> rules) {
  std::vector<Key> keys;
  keys.reserve(rules.size());
  for (const Rule& rule : rules) keys.push_back(key_of(rule));
  std::vector<std::uint32_t> order(rules.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
  return order;
}

}  // namespace penstock::nids
