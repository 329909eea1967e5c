// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/gpu_shares.h"

#include <algorithm>
#include <limits>

namespace penstock::plan {

namespace {

constexpr double kPartOfKernels = 0.5;
constexpr double kUsPerSecond = 1e6;

/// The time saved by one more multiprocessor, relative to its cost: n t(n) grows by `fixed_us`.
double gain(const StageTime& stage, double multiprocessors) {
  const double faster_us = stage.us(multiprocessors) - stage.us(multiprocessors + 1);
  if (stage.fixed_us > 0) return faster_us / stage.fixed_us;
  return faster_us > 0 ? std::numeric_limits<double>::infinity() : 0;
}

}  // namespace

StageTime fit_stage_time(std::span<const MeasuredTime> times) {
  if (times.empty()) return {};
  const auto count = static_cast<double>(times.size());
  double mean_x = 0;
  double mean_us = 0;
  for (const MeasuredTime& time : times) {
    mean_x += 1.0 / time.multiprocessors / count;
    mean_us += time.us / count;
  }
  double xx = 0;
  double xy = 0;
  for (const MeasuredTime& time : times) {
    const double x = 1.0 / time.multiprocessors - mean_x;
    xx += x * x;
    xy += x * (time.us - mean_us);
  }
  // If more multiprocessors do not help, or help by more than their number, this is a measurement error.
  if (xx == 0 || xy <= 0) return {mean_us, 0};
  const double spread_us = xy / xx;
  if (spread_us * mean_x > mean_us) return {0, mean_us / mean_x};
  return {mean_us - spread_us * mean_x, spread_us};
}

double time_for_kernels_us(const GpuLoad& load) noexcept {
  const double batch_us = kUsPerSecond / load.batches_per_second();
  double us = load.batches_in_flight * batch_us;
  if (load.latency.count() > 0) {
    us = std::min(us, static_cast<double>(load.latency.count()) / 1e3 - load.workers * batch_us);
  }
  return kPartOfKernels * (us - load.transfer_us);
}

std::optional<std::vector<std::uint32_t>> choose_shares(std::span<const StageTime> stages, const GpuRoom& room,
                                                        double kernels_us, double batches_per_second) {
  std::vector<std::uint32_t> shares(stages.size(), std::min(room.least_share, room.multiprocessors));
  const auto sum = [&](auto of) {
    double all = 0;
    for (std::size_t i = 0; i < stages.size(); ++i) all += of(stages[i], shares[i]);
    return all;
  };
  // Start with the smallest shares, and add each multiprocessor where it gains the most. Times and costs are convex, so
  // the result is optimal except for the last multiprocessor.
  while (sum([](const StageTime& stage, double n) { return stage.us(n); }) > kernels_us) {
    std::size_t best = stages.size();
    for (std::size_t i = 0; i < stages.size(); ++i) {
      if (shares[i] == room.multiprocessors || gain(stages[i], shares[i]) == 0) continue;
      if (best == stages.size() || gain(stages[i], shares[i]) > gain(stages[best], shares[best])) best = i;
    }
    if (best == stages.size()) return std::nullopt;
    ++shares[best];
  }
  const double used_us = sum([](const StageTime& stage, double n) { return n * stage.us(n); });
  if (used_us * batches_per_second > room.multiprocessors * kUsPerSecond) return std::nullopt;
  return shares;
}

std::vector<std::uint32_t> shares_to_measure(std::uint32_t multiprocessors) {
  std::vector<std::uint32_t> shares;
  for (const std::uint32_t part : {1U, 2U, 4U, 8U}) {
    if (multiprocessors >= part) shares.push_back(multiprocessors / part);
  }
  return shares;
}

void choose_by_times(GpuShares& shares, std::uint32_t multiprocessors, const GpuLoad& load) {
  std::vector<StageTime> stages;
  GpuRoom room{multiprocessors, 1};
  for (const GpuShares::Share& function : shares.functions) {
    if (function.times.empty()) continue;
    stages.push_back(fit_stage_time(function.times));
    const auto least = std::ranges::min(function.times, {}, &MeasuredTime::multiprocessors);
    room.least_share = std::max(room.least_share, least.multiprocessors);
  }
  const auto chosen = choose_shares(stages, room, time_for_kernels_us(load), load.batches_per_second());
  std::size_t next = 0;
  for (GpuShares::Share& function : shares.functions) {
    function.multiprocessors = 0;
    if (function.times.empty() || !chosen) continue;
    const std::uint32_t share = (*chosen)[next++];
    if (share < multiprocessors) function.multiprocessors = share;
  }
}

}  // namespace penstock::plan
