// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/gpu_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

namespace penstock::plan {
namespace {

using std::chrono::milliseconds;

std::vector<MeasuredTime> measured(const StageTime& stage) {
  std::vector<MeasuredTime> times;
  for (const std::uint32_t share : shares_to_measure(132)) times.push_back({share, stage.us(share)});
  return times;
}

TEST(StageTimes, AreRecoveredByRegression) {
  const StageTime found = fit_stage_time(measured({5, 660}));
  EXPECT_NEAR(found.fixed_us, 5, 1e-9);
  EXPECT_NEAR(found.spread_us, 660, 1e-7);
}

TEST(StageTimes, AreNearNoisyMeasurements) {
  const std::vector<MeasuredTime> times{{132, 10.4}, {66, 14.7}, {33, 25.3}, {16, 46.1}};  // about 5 + 660 / n
  const StageTime found = fit_stage_time(times);
  for (const MeasuredTime& time : times) EXPECT_NEAR(found.us(time.multiprocessors), time.us, 0.05 * time.us);
}

TEST(StageTimes, AreConstantIfMoreMultiprocessorsDoNotHelp) {
  const StageTime alike = fit_stage_time(std::vector<MeasuredTime>{{132, 23}, {66, 22}, {33, 23}, {16, 22}});
  EXPECT_DOUBLE_EQ(alike.spread_us, 0);
  EXPECT_DOUBLE_EQ(alike.fixed_us, 22.5);
  const StageTime one = fit_stage_time(std::vector<MeasuredTime>{{1, 7}});
  EXPECT_DOUBLE_EQ(one.us(1), 7);
}

TEST(StageTimes, HaveNoNegativePart) {
  const StageTime found = fit_stage_time(std::vector<MeasuredTime>{{132, 1}, {66, 2}, {33, 4.5}, {16, 12}});
  EXPECT_DOUBLE_EQ(found.fixed_us, 0);
  EXPECT_GT(found.spread_us, 0);
}

TEST(MeasuredShares, AreThoseOfTheDevice) {
  EXPECT_EQ(shares_to_measure(132), (std::vector<std::uint32_t>{132, 66, 33, 16}));
  EXPECT_EQ(shares_to_measure(3), (std::vector<std::uint32_t>{3, 1}));
  EXPECT_EQ(shares_to_measure(1), (std::vector<std::uint32_t>{1}));
}

constexpr std::size_t kBatch = 5'000'000;  // 100 us at 400 Gbit/s

TEST(TimeForKernels, IsHalfOfTheTimeThatTransfersLeave) {
  GpuLoad load{.bits_per_second = 400e9, .batch_bytes = kBatch, .workers = 6, .batches_in_flight = 18};
  EXPECT_DOUBLE_EQ(time_for_kernels_us(load), 900);
  load.transfer_us = 200;
  EXPECT_DOUBLE_EQ(time_for_kernels_us(load), 800);
}

TEST(TimeForKernels, IsBoundedByTheLatency) {
  GpuLoad load{.bits_per_second = 400e9, .batch_bytes = kBatch, .workers = 6, .batches_in_flight = 18};
  load.transfer_us = 200;
  load.latency = milliseconds{1};
  EXPECT_DOUBLE_EQ(time_for_kernels_us(load), 100) << "600 us pass until six workers' batches are full";
  load.latency = milliseconds{10};
  EXPECT_DOUBLE_EQ(time_for_kernels_us(load), 800) << "then the batches in flight are what bounds it";
  load.latency = std::chrono::microseconds{700};
  EXPECT_LT(time_for_kernels_us(load), 0);
}

double cost(const std::vector<StageTime>& stages, const std::vector<std::uint32_t>& shares) {
  double sum = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) sum += shares[i] * stages[i].us(shares[i]);
  return sum;
}
double time_of(const std::vector<StageTime>& stages, const std::vector<std::uint32_t>& shares) {
  double sum = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) sum += stages[i].us(shares[i]);
  return sum;
}

/// The lowest cost among all pairs of shares.
double least_cost(const std::vector<StageTime>& stages, std::uint32_t multiprocessors, double kernels_us) {
  double least = std::numeric_limits<double>::max();
  for (std::uint32_t a = 1; a <= multiprocessors; ++a) {
    for (std::uint32_t b = 1; b <= multiprocessors; ++b) {
      if (time_of(stages, {a, b}) <= kernels_us) least = std::min(least, cost(stages, {a, b}));
    }
  }
  return least;
}

TEST(Shares, MeetTheTimeLimitAtTheLowestCost) {
  const std::vector<std::vector<StageTime>> chains{
      {{3, 700}, {10, 1500}}, {{10, 100}, {1, 3000}}, {{5, 5}, {5, 2000}}, {{0.5, 900}, {20, 900}}};
  for (const auto& stages : chains) {
    for (const double kernels_us : {60.0, 80.0, 120.0, 300.0, 900.0, 5000.0}) {
      const auto shares = choose_shares(stages, {132, 1}, kernels_us, 1);
      const double least = least_cost(stages, 132, kernels_us);
      ASSERT_EQ(shares.has_value(), least < std::numeric_limits<double>::max()) << kernels_us;
      if (!shares) continue;
      EXPECT_LE(time_of(stages, *shares), kernels_us);
      const double last_step = std::max(stages[0].fixed_us, stages[1].fixed_us);
      EXPECT_LE(cost(stages, *shares), least + last_step) << (*shares)[0] << ", " << (*shares)[1];
    }
  }
}

TEST(Shares, GoWhereTheyGainTheMost) {
  const auto shares = choose_shares(std::vector<StageTime>{{10, 100}, {10, 4900}}, {132, 1}, 120, 1);
  ASSERT_TRUE(shares);
  EXPECT_NEAR((*shares)[1], 7 * (*shares)[0], 7) << "by the root of what is spread";
}

TEST(Shares, AreEmptyIfTheTimeLimitCannotBeMet) {
  const std::vector<StageTime> stages{{30, 660}, {40, 0}};
  EXPECT_TRUE(choose_shares(stages, {132, 1}, 76, 1));
  EXPECT_FALSE(choose_shares(stages, {132, 1}, 74, 1)) << "75 us with all of the device";
  EXPECT_FALSE(choose_shares(stages, {132, 1}, -5, 1));
}

TEST(Shares, AreEmptyIfTheDeviceIsTooSmallForTheRate) {
  const std::vector<StageTime> stages{{0, 660}, {0, 660}};  // together 1,320 us on one multiprocessor
  EXPECT_TRUE(choose_shares(stages, {132, 16}, 1000, 99'000));
  EXPECT_FALSE(choose_shares(stages, {132, 16}, 1000, 101'000));
}

TEST(Shares, AreNotBelowTheMeasuredRange) {
  const auto shares = choose_shares(std::vector<StageTime>{{10, 100}, {10, 0}}, {132, 16}, 5000, 1);
  EXPECT_EQ(shares, (std::vector<std::uint32_t>{16, 16}));
}

TEST(Shares, AreChosenForTheFunctionsThatWereMeasured) {
  GpuShares shares{.choice = GpuShares::Choice::automatic, .functions = {{}, {0, measured({4, 700})}, {}}};
  shares.functions.push_back({0, measured({30, 1500})});
  GpuLoad load{.bits_per_second = 400e9, .batch_bytes = kBatch, .workers = 6, .batches_in_flight = 18};
  load.transfer_us = 200;
  load.latency = milliseconds{1};
  choose_by_times(shares, 132, load);
  EXPECT_EQ(shares.of(0), 0U);
  EXPECT_EQ(shares.of(2), 0U);
  EXPECT_EQ(shares.of(4), 0U) << "there is no such function";
  EXPECT_GE(shares.of(1), 16U);
  EXPECT_GE(shares.of(3), 16U);
  EXPECT_LE(4 + 700.0 / shares.of(1) + 30 + 1500.0 / shares.of(3), 100) << "what the bound leaves kernels";
  EXPECT_LT(shares.of(1) + shares.of(3), 132U) << "the two run beside each other";
  load.latency = std::chrono::microseconds{850};
  choose_by_times(shares, 132, load);
  EXPECT_EQ(shares.of(1) + shares.of(3), 0U) << "each has all, where no shares keep the bound";
}

}  // namespace
}  // namespace penstock::plan
