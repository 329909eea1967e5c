// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The values of one dimension for which an entry matches, as intervals: what the builder of bit vectors makes of
// conditions, whatever their form. All dimensions count in 128-bit numbers, so that one builder does for all.

#pragma once

#include <cstdint>
#include <vector>

#include "base/ip_address.h"
#include "classify/rule.h"

namespace penstock::classify {

using Number = Ipv6Address;  // a 128-bit number; smaller ones stand in the low word

/// Both ends belong to it.
struct Interval {
  Number low;
  Number high;
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// Ascending, disjoint, not adjacent.
using IntervalSet = std::vector<Interval>;

[[nodiscard]] constexpr Number number(std::uint64_t n) noexcept { return {0, n}; }
[[nodiscard]] constexpr Number successor(Number n) noexcept { return {n.high + (n.low + 1 == 0 ? 1 : 0), n.low + 1}; }
[[nodiscard]] constexpr Number predecessor(Number n) noexcept { return {n.high - (n.low == 0 ? 1 : 0), n.low - 1}; }

/// Any intervals as a set.
[[nodiscard]] IntervalSet united(std::vector<Interval> intervals);
[[nodiscard]] IntervalSet intersection(const IntervalSet& a, const IntervalSet& b);
/// What of `domain` is not in `set`, which lies inside it.
[[nodiscard]] IntervalSet complement(const IntervalSet& set, const Interval& domain);

/// What the bit vectors look at, one after the other.
enum class Dimension : std::uint8_t {
  source4,
  destination4,
  source6,
  destination6,
  source_port,
  destination_port,
  kind,
  place,
};
inline constexpr std::uint32_t kDimensionCount = 8;

/// The values of `dimension` for which `entry` matches. `port_count` as in place_of().
[[nodiscard]] IntervalSet values_of(const Ruleset& rules, const Entry& entry, Dimension dimension,
                                    std::uint32_t port_count);
[[nodiscard]] Interval domain_of(Dimension dimension, std::uint32_t port_count);

}  // namespace penstock::classify
