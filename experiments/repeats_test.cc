// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/repeats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace penstock::experiments {
namespace {

TEST(Repeats, HaveAMedianInAnyOrder) {
  EXPECT_EQ(median_of({3, 1, 2}), 2);
  EXPECT_EQ(median_of({4, 1, 2, 3}), 2.5);
}

TEST(Repeats, AreKeptInTheirOrderIfThereAreSeveral) {
  Point point;
  set_repeats(point, "mpps", {7, 5, 6});
  set_repeats(point, "gbps", {3});
  EXPECT_EQ(describe(point), "mpps=6 mpps_repeats=7, 5, 6 gbps=3");
  EXPECT_EQ(repeats_of(point, "mpps"), (Repeats{7, 5, 6}));
  EXPECT_EQ(repeats_of(point, "gbps"), Repeats{3});
  EXPECT_EQ(repeats_of(point, "lost"), Repeats());
}

TEST(Repeats, GiveStudentsT) {
  // Printed tables.
  const std::pair<unsigned, double> known[] = {{1, 12.706}, {2, 4.303},  {4, 2.776},  {9, 2.262},  {12, 2.179},
                                               {13, 2.160}, {20, 2.086}, {30, 2.042}, {60, 2.000}, {120, 1.980}};
  for (const auto& [degrees, t] : known) EXPECT_NEAR(students_t(degrees), t, 0.0006) << degrees;
  EXPECT_EQ(students_t(0), students_t(1)) << "never less than for one";
}

TEST(Repeats, HaveAMeanWithAnInterval) {
  const auto mean = mean_of({10, 12, 14});  // standard deviation 2
  ASSERT_TRUE(mean);
  EXPECT_DOUBLE_EQ(mean->value, 12);
  EXPECT_NEAR(mean->high - 12, 4.3027 * 2 / std::sqrt(3), 1e-9);
  EXPECT_NEAR(12 - mean->low, mean->high - 12, 1e-9);
  EXPECT_FALSE(mean_of({10})) << "one value says nothing about others";
  EXPECT_FALSE(mean_of({1.7e308, 1.7e308})) << "too large for a double";
}

TEST(Repeats, HaveAQuotientWithAnIntervalThatIsNotSymmetric) {
  const auto quotient =
      quotient_of({100, 102, 98}, {50, 49, 51});  // each 2 % apart: standard error 1.155 % of the mean
  ASSERT_TRUE(quotient);
  EXPECT_DOUBLE_EQ(quotient->value, 2);
  const double half = 2.7764 * std::sqrt(2 * 0.02 * 0.02 / 3);  // 4 degrees of freedom
  EXPECT_NEAR(quotient->high, 2 * std::exp(half), 1e-9);
  EXPECT_NEAR(quotient->low, 2 * std::exp(-half), 1e-9);
  EXPECT_FALSE(quotient_of({100}, {50, 51}));
  EXPECT_FALSE(quotient_of({1, 2}, {0, 0}));
  const auto exact = quotient_of({3, 3}, {2, 2});
  ASSERT_TRUE(exact);
  EXPECT_EQ(exact->low, exact->high);
}

/// Draws series of known means: about 95 of 100 intervals must contain the truth.
TEST(Repeats, HaveIntervalsThatContainTheTruthAsOftenAsTheySay) {
  std::mt19937 random(1);
  std::normal_distribution<double> above(300, 9);
  std::normal_distribution<double> below(150, 3);
  constexpr int kTrials = 4000;
  int means = 0;
  int quotients = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    Repeats dividends(5);
    Repeats divisors(3);
    std::ranges::generate(dividends, [&] { return above(random); });
    std::ranges::generate(divisors, [&] { return below(random); });
    const auto mean = mean_of(dividends);
    const auto quotient = quotient_of(dividends, divisors);
    means += mean->low <= 300 && mean->high >= 300 ? 1 : 0;
    quotients += quotient->low <= 2 && quotient->high >= 2 ? 1 : 0;
  }
  EXPECT_NEAR(means, 0.95 * kTrials, 0.015 * kTrials);
  EXPECT_GE(quotients, 0.94 * kTrials);
  EXPECT_LE(quotients, 0.985 * kTrials) << "rounded down, so a little wider";
}

TEST(Repeats, AreComparedByMediansIfOneWasMeasuredOnce) {
  Point point;
  set_quotient(point, "gain", {6, 8}, {2});
  EXPECT_EQ(describe(point), "gain=3.5");
  set_quotient(point, "gain", {6, 6}, {2, 2});
  EXPECT_EQ(describe(point), "gain=3 gain_low=3 gain_high=3");
}

TEST(Repeats, AreComparedInPercentWithTheirInterval) {
  Point point;
  set_quotient(point, "part", {50, 49, 51}, {100, 102, 98}, 100);
  set_percent_less(point, "less", {50, 49, 51}, {100, 102, 98});
  EXPECT_DOUBLE_EQ(*point.number("part"), 50);
  EXPECT_DOUBLE_EQ(*point.number("less"), 50);
  EXPECT_LT(*point.number("part_low"), 50);
  EXPECT_DOUBLE_EQ(*point.number("less_low"), 100 - *point.number("part_high"));
  EXPECT_DOUBLE_EQ(*point.number("less_high"), 100 - *point.number("part_low"));
  set_percent_less(point, "once", {30}, {120});
  EXPECT_DOUBLE_EQ(*point.number("once"), 75);
  EXPECT_FALSE(point.number("once_low"));
}

}  // namespace
}  // namespace penstock::experiments
