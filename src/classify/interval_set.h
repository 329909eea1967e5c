// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The values of one dimension that match an entry, as intervals. The bit vector builder turns conditions of any form
// into such sets. All dimensions use 128-bit numbers, so that one builder works for all.

#pragma once

#include <cstdint>

#include "classify/interval.h"
#include "classify/rule.h"

namespace penstock::classify {

[[nodiscard]] constexpr Number number(std::uint64_t n) noexcept { return {0, n}; }
[[nodiscard]] constexpr Number successor(Number n) noexcept { return {n.high + (n.low + 1 == 0 ? 1 : 0), n.low + 1}; }
[[nodiscard]] constexpr Number predecessor(Number n) noexcept { return {n.high - (n.low == 0 ? 1 : 0), n.low - 1}; }

/// The union of arbitrary intervals.
[[nodiscard]] IntervalSet united(std::vector<Interval> intervals);
[[nodiscard]] IntervalSet intersection(const IntervalSet& a, const IntervalSet& b);
/// The values of `domain` that are not in `set`. `set` must lie within `domain`.
[[nodiscard]] IntervalSet complement(const IntervalSet& set, const Interval& domain);

/// The dimensions, in the order in which the bit vectors test them.
enum class Dimension : std::uint8_t {
  source4,
  destination4,
  source6,
  destination6,
  source_port,
  destination_port,
  kind,
  place,
  connection,
};
inline constexpr std::uint32_t kDimensionCount = 9;

/// How many ports the rules distinguish: one more than the highest that a condition names.
[[nodiscard]] std::uint32_t count_ports(const Ruleset& rules);

/// The values of `dimension` for which `entry` matches. `port_count` as in place_of().
[[nodiscard]] IntervalSet values_of(const Ruleset& rules, const Entry& entry, Dimension dimension,
                                    std::uint32_t port_count);
[[nodiscard]] Interval domain_of(Dimension dimension, std::uint32_t port_count);

}  // namespace penstock::classify
