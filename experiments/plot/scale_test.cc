// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/plot/scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace penstock::experiments {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> labels_of(const std::vector<Tick>& ticks) {
  std::vector<std::string> labels;
  labels.reserve(ticks.size());
  for (const Tick& tick : ticks) labels.push_back(tick.label);
  return labels;
}

TEST(Scale, ShowsValuesWithAPositionOnTheAxis) {
  EXPECT_TRUE(can_show(AxisKind::linear, -1));
  EXPECT_FALSE(can_show(AxisKind::logarithmic, 0));
  EXPECT_FALSE(can_show(AxisKind::percentiles, 100));
  EXPECT_FALSE(can_show(AxisKind::linear, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(can_show(AxisKind::logarithmic, std::numeric_limits<double>::infinity()));
}

TEST(Scale, BeginsALinearAxisAtZeroOrBelow) {
  EXPECT_EQ(range_of(AxisKind::linear, {5, 7}).low, 0);
  EXPECT_EQ(range_of(AxisKind::linear, {5, 7}).high, 7);
  EXPECT_EQ(range_of(AxisKind::linear, {-2, 7}).low, -2);
  EXPECT_EQ(range_of(AxisKind::linear, {0, 0}).share_of(0), 0);
}

TEST(Scale, SpansAFactorOfFourAroundASingleValueOnALogarithmicAxis) {
  const Range range = range_of(AxisKind::logarithmic, {100});
  EXPECT_NEAR(range.low, std::log10(50), 1e-9);
  EXPECT_NEAR(range.high, std::log10(200), 1e-9);
}

TEST(Scale, ExtendsToNearValuesButNotToFarOnes) {
  const Range range = range_of(AxisKind::linear, {100});
  EXPECT_EQ(extended_to(range, AxisKind::linear, {129}).high, 129);
  EXPECT_EQ(extended_to(range, AxisKind::linear, {131}).high, 100);
  EXPECT_EQ(extended_to(range, AxisKind::linear, {129, 1000}).high, 129);
  const Range decades = range_of(AxisKind::logarithmic, {1, 100});
  EXPECT_NEAR(extended_to(decades, AxisKind::logarithmic, {0.3, 0.1}).low, std::log10(0.3), 1e-9);
}

TEST(Scale, SpreadsTheHighPercentiles) {
  const auto distance = [](double a, double b) {
    return place_on(AxisKind::percentiles, b) - place_on(AxisKind::percentiles, a);
  };
  EXPECT_NEAR(distance(99, 99.9), distance(90, 99), 0.1);
  EXPECT_NEAR(distance(1, 50), distance(50, 99), 1e-9);
}

TEST(Scale, HasRoundTicks) {
  EXPECT_THAT(labels_of(ticks_of(AxisKind::linear, {0, 355})), ElementsAre("0", "100", "200", "300"));
  EXPECT_THAT(labels_of(ticks_of(AxisKind::linear, {-1, 1})), ElementsAre("-1", "-0.5", "0", "0.5", "1"));
  EXPECT_THAT(labels_of(ticks_of(AxisKind::logarithmic, {0, 4})), ElementsAre("1", "10", "100", "1,000", "10,000"));
  EXPECT_THAT(labels_of(ticks_of(AxisKind::logarithmic, {1, 2})), ElementsAre("10", "20", "30", "50", "70", "100"));
  EXPECT_THAT(labels_of(ticks_of(AxisKind::percentiles, range_of(AxisKind::percentiles, {10, 99}))),
              ElementsAre("10", "50", "90", "99"));
}

TEST(Scale, HasFewTicksWithinItsRangeForAnyValues) {
  std::mt19937 random(7);  // NOLINT: the same values each time
  std::uniform_real_distribution<double> exponent(-300, 300);
  for (int round = 0; round < 1000; ++round) {
    const std::vector<double> values{std::pow(10, exponent(random)), std::pow(10, exponent(random))};
    for (const AxisKind kind : {AxisKind::linear, AxisKind::logarithmic}) {
      const Range range = range_of(kind, values);
      const std::vector<Tick> ticks = ticks_of(kind, range);
      EXPECT_LE(ticks.size(), 12U);
      for (const Tick& tick : ticks) EXPECT_TRUE(range.contains(tick.place)) << tick.label;
      for (const double value : values) {
        const double share = range.share_of(place_on(kind, value));
        EXPECT_GE(share, 0);
        EXPECT_LE(share, 1);
      }
    }
  }
}

TEST(Scale, WritesNumbersAsPeopleReadThem) {
  EXPECT_EQ(axis_number(1234567), "1,234,567");
  EXPECT_EQ(axis_number(3137.4), "3,137");
  EXPECT_EQ(axis_number(55.0637), "55.06");
  EXPECT_EQ(axis_number(0.25), "0.25");
}

}  // namespace
}  // namespace penstock::experiments
