// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Operations on sets of ports or addresses, stored as sorted inclusive ranges that neither overlap nor touch.

#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/ip_address.h"

namespace penstock::nids::ranges {

constexpr std::uint16_t lowest(std::uint16_t) noexcept { return 0; }
constexpr std::uint16_t highest(std::uint16_t) noexcept { return 0xffff; }
constexpr std::uint16_t next(std::uint16_t v) noexcept { return static_cast<std::uint16_t>(v + 1); }
constexpr std::uint16_t before(std::uint16_t v) noexcept { return static_cast<std::uint16_t>(v - 1); }

constexpr Ipv4Address lowest(Ipv4Address) noexcept { return {0}; }
constexpr Ipv4Address highest(Ipv4Address) noexcept { return {0xffffffff}; }
constexpr Ipv4Address next(Ipv4Address v) noexcept { return {v.bits + 1}; }
constexpr Ipv4Address before(Ipv4Address v) noexcept { return {v.bits - 1}; }

constexpr Ipv6Address lowest(const Ipv6Address&) noexcept { return {0, 0}; }
constexpr Ipv6Address highest(const Ipv6Address&) noexcept { return {~std::uint64_t{0}, ~std::uint64_t{0}}; }
constexpr Ipv6Address next(const Ipv6Address& v) noexcept { return {v.high + (v.low == ~std::uint64_t{0}), v.low + 1}; }
constexpr Ipv6Address before(const Ipv6Address& v) noexcept { return {v.high - (v.low == 0), v.low - 1}; }

/// Turns arbitrary ranges into a set: sorts them, and joins those that overlap or touch.
template <typename Range>
void normalise(std::vector<Range>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (kept != 0) {
      Range& last = ranges[kept - 1];
      if (last.last == highest(last.last) || ranges[i].first <= next(last.last)) {
        last.last = std::max(last.last, ranges[i].last);
        continue;
      }
    }
    ranges[kept++] = ranges[i];
  }
  ranges.resize(kept);
}

/// Returns all values that are not in the set.
template <typename Range>
[[nodiscard]] std::vector<Range> complement(const std::vector<Range>& set) {
  using Value = decltype(Range::first);
  std::vector<Range> out;
  Value from = lowest(Value{});
  for (const Range& range : set) {
    if (from < range.first) out.push_back({from, before(range.first)});
    if (range.last == highest(Value{})) return out;
    from = next(range.last);
  }
  out.push_back({from, highest(Value{})});
  return out;
}

/// Returns the values that are in both sets.
template <typename Range>
[[nodiscard]] std::vector<Range> intersection(const std::vector<Range>& a, const std::vector<Range>& b) {
  std::vector<Range> out;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Range both{std::max(a[i].first, b[j].first), std::min(a[i].last, b[j].last)};
    if (both.first <= both.last) out.push_back(both);
    if (a[i].last < b[j].last) {
      ++i;
    } else {
      ++j;
    }
  }
  return out;
}

}  // namespace penstock::nids::ranges
