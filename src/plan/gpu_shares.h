// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How much of a GPU the stage of each function may fill, so that kernels of several functions and batches run
// concurrently. Shares can be chosen by measurement, with the model of G-NET (Zhang et al., NSDI 2018), which Gaviss's
// scheduler uses too (§5.2): a stage takes t(n) = a + b/n on n multiprocessors, with a and b found by regression. Among
// all shares that meet the time limit, those with the lowest cost are chosen, measured in multiprocessors times time.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace penstock::plan {

/// The time of a stage's kernels for a full batch, alone on the device.
struct MeasuredTime {
  std::uint32_t multiprocessors = 0;
  double us = 0;
};

struct GpuShares {
  enum class Choice : std::uint8_t { whole, automatic, given };
  struct Share {
    std::uint32_t multiprocessors = 0;  // 0: all
    std::vector<MeasuredTime> times;    // the measurements, if it was chosen by measurement
  };
  Choice choice = Choice::whole;
  std::vector<Share> functions;  // by function of the chain; empty: each may fill the device

  [[nodiscard]] std::uint32_t of(std::size_t function) const noexcept {
    return function < functions.size() ? functions[function].multiprocessors : 0;
  }
};
inline constexpr std::string_view kShareChoiceNames[] = {"whole", "auto", "given"};

/// t(n) = fixed_us + spread_us / n. Neither is negative.
struct StageTime {
  double fixed_us = 0;
  double spread_us = 0;

  [[nodiscard]] double us(double multiprocessors) const noexcept { return fixed_us + spread_us / multiprocessors; }
};

/// Fits the model by least squares.
[[nodiscard]] StageTime fit_stage_time(std::span<const MeasuredTime> times);

/// The load on one GPU.
struct GpuLoad {
  double bits_per_second = 0;  // of frame data
  std::size_t batch_bytes = 0;
  unsigned workers = 1;                // that use this GPU
  unsigned batches_in_flight = 1;      // on this GPU, for all workers
  std::chrono::nanoseconds latency{};  // upper bound; 0: none
  double transfer_us = 0;              // for a batch, both directions

  [[nodiscard]] double batches_per_second() const noexcept {
    return bits_per_second / 8 / static_cast<double>(batch_bytes);
  }
};

/// The total time that the kernels of a batch may take, in microseconds; 0 or less if there is none. Two limits apply.
/// To sustain the rate, a batch must return before the batches in flight with it are due again. To meet the latency
/// bound, its packets must return in time, considering that they were collected while all workers' batches were being
/// filled. The kernels may use half of the time that transfers leave; the rest is for waiting, for the copy engines and
/// for kernels of other batches.
[[nodiscard]] double time_for_kernels_us(const GpuLoad& load) noexcept;

/// The multiprocessors that can be shared.
struct GpuRoom {
  std::uint32_t multiprocessors = 0;
  std::uint32_t least_share = 1;  // of a stage; smaller shares were not measured
};

/// The shares of the stages, in multiprocessors. Empty if no shares meet the time limit, or if the stages would
/// together need more than the device at that rate, so that shares are of no use.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> choose_shares(std::span<const StageTime> stages,
                                                                      const GpuRoom& room, double kernels_us,
                                                                      double batches_per_second);

/// The shares to measure: all multiprocessors, a half, a quarter and an eighth; in descending order, without 0.
[[nodiscard]] std::vector<std::uint32_t> shares_to_measure(std::uint32_t multiprocessors);

/// Chooses the shares of all functions that have measured times, with the functions above.
void choose_by_times(GpuShares& shares, std::uint32_t multiprocessors, const GpuLoad& load);

}  // namespace penstock::plan
