// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/latency_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "report/text_table.h"

namespace penstock::report {
namespace {

using std::chrono::nanoseconds;

TEST(LatencyHistogram, QuantilesAreWithinASixtyFourthOfTheSortedTimes) {
  auto histogram = std::make_unique<LatencyHistogram>();
  std::mt19937_64 random(3);
  std::vector<std::int64_t> times;
  for (int i = 0; i < 50000; ++i) {
    times.push_back(static_cast<std::int64_t>(random() >> (random() % 40 + 24)));
    histogram->record(nanoseconds(times.back()));
  }
  std::sort(times.begin(), times.end());
  for (const double fraction : {0.5, 0.95, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<std::size_t>(std::ceil(fraction * 50000)) - 1;
    const auto exact = static_cast<double>(times[rank]);
    const auto got = static_cast<double>(histogram->quantile(fraction).count());
    EXPECT_GE(got, exact);
    EXPECT_LE(got, exact * (1 + 1.0 / 64) + 1);
  }
}

TEST(LatencyHistogram, AcceptsZeroNegativeAndVeryLongTimes) {
  auto histogram = std::make_unique<LatencyHistogram>();
  EXPECT_EQ(histogram->quantile(0.5), nanoseconds{0});
  histogram->record(nanoseconds{-5});
  histogram->record(nanoseconds{0}, 3);
  EXPECT_EQ(histogram->quantile(1.0), nanoseconds{0});
  histogram->record(nanoseconds::max());
  EXPECT_EQ(histogram->count(), 5U);
  EXPECT_GT(histogram->quantile(1.0), std::chrono::minutes{17});
}

TEST(LatencyHistogram, CountsTimesAboveALimitAndOmitsNone) {
  auto histogram = std::make_unique<LatencyHistogram>();
  std::vector<nanoseconds> times;
  std::mt19937_64 random(5);
  for (int i = 0; i < 5000; ++i) {
    times.emplace_back(static_cast<std::int64_t>(random() >> (random() % 30 + 34)));
    histogram->record(times.back());
  }
  for (const nanoseconds limit : {nanoseconds{0}, nanoseconds{1}, nanoseconds{1000}, nanoseconds{1'000'000}}) {
    const auto above = [&](nanoseconds least) {
      return static_cast<std::uint64_t>(std::ranges::count_if(times, [&](nanoseconds time) { return time > least; }));
    };
    EXPECT_GE(histogram->count_above(limit), above(limit));
    EXPECT_LE(histogram->count_above(limit), above(limit - limit / 64 - nanoseconds{1}));
  }
}

TEST(LatencyHistogram, MergesByAdding) {
  auto a = std::make_unique<LatencyHistogram>();
  auto b = std::make_unique<LatencyHistogram>();
  a->record(nanoseconds{10}, 2);
  b->record(nanoseconds{1000}, 2);
  a->merge(*b);
  EXPECT_EQ(a->count(), 4U);
  EXPECT_EQ(a->quantile(0.5), nanoseconds{10});
}

TEST(TextTable, AlignsTextLeftAndNumbersRight) {
  TextTable table({"function", ">packets"});
  table.add_row({"firewall", "7"});
  table.add_row({"µ", "1,234"});
  EXPECT_EQ(table.text(), "function  packets\nfirewall        7\nµ           1,234\n");
}

}  // namespace
}  // namespace penstock::report
