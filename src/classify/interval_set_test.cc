// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "classify/interval_set.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bitset>
#include <cstdlib>

namespace penstock::classify {
namespace {

// The same cases in every run, unless the user sets a seed.
[[maybe_unused]] const int kFixedSeed = ::setenv("RC_PARAMS", "seed=1", 0);

constexpr Interval kDomain{number(0), number(63)};

/// Sets of numbers below 64 as bits: the reference.
using Bits = std::bitset<64>;

std::vector<Interval> random_intervals() {
  std::vector<Interval> intervals;
  const auto count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < count; ++i) {
    const auto a = *rc::gen::inRange<std::uint64_t>(0, 64);
    const auto b = *rc::gen::inRange<std::uint64_t>(0, 64);
    intervals.push_back({number(std::min(a, b)), number(std::max(a, b))});
  }
  return intervals;
}

Bits bits_of(const std::vector<Interval>& intervals) {
  Bits bits;
  for (const Interval& interval : intervals) {
    for (std::uint64_t i = interval.low.low; i <= interval.high.low; ++i) bits.set(i);
  }
  return bits;
}

bool is_canonical(const IntervalSet& set) {
  for (std::size_t i = 1; i < set.size(); ++i) {
    if (set[i].low <= successor(set[i - 1].high)) return false;
  }
  return true;
}

RC_GTEST_PROP(IntervalSet, UnionIntersectionAndComplementAreThoseOfTheValues, ()) {
  const std::vector<Interval> a = random_intervals();
  const std::vector<Interval> b = random_intervals();
  const IntervalSet ua = united(a);
  const IntervalSet ub = united(b);
  RC_ASSERT(bits_of(ua) == bits_of(a));
  RC_ASSERT(is_canonical(ua));
  const IntervalSet both = intersection(ua, ub);
  RC_ASSERT(bits_of(both) == (bits_of(a) & bits_of(b)));
  RC_ASSERT(is_canonical(both));
  const IntervalSet rest = complement(ua, kDomain);
  RC_ASSERT(bits_of(rest) == ~bits_of(a));
  RC_ASSERT(is_canonical(rest));
}

TEST(IntervalSet, CarriesFromOneWordToTheNext) {
  const Number last{0, ~std::uint64_t{0}};
  EXPECT_EQ(successor(last), (Number{1, 0}));
  EXPECT_EQ(predecessor(Number{1, 0}), last);
}

}  // namespace
}  // namespace penstock::classify
