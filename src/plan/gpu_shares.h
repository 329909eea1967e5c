// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What of a GPU each function's stage may fill, so that kernels of several functions and batches run beside each other;
// and how it is chosen by measurement, by the model of G-NET (Zhang et al., NSDI 2018), which Gaviss's scheduler takes
// over (§5.2): a stage's time on n multiprocessors is t(n) = a + b/n, by regression. Of all shares with which the
// stages keep the time that they have, those are taken that cost the least of the device, in multiprocessors times
// time.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace penstock::plan {

/// A stage's kernels for a full batch, alone on the device.
struct MeasuredTime {
  std::uint32_t multiprocessors = 0;
  double us = 0;
};

struct GpuShares {
  enum class Choice : std::uint8_t { whole, automatic, given };
  struct Share {
    std::uint32_t multiprocessors = 0;  // 0: all
    std::vector<MeasuredTime> times;    // where it was chosen by measurement
  };
  Choice choice = Choice::whole;
  std::vector<Share> functions;  // of the chain; empty: all have all

  [[nodiscard]] std::uint32_t of(std::size_t function) const noexcept {
    return function < functions.size() ? functions[function].multiprocessors : 0;
  }
};
inline constexpr std::string_view kShareChoiceNames[] = {"whole", "auto", "given"};

/// t(n) = fixed_us + spread_us / n; neither is negative.
struct StageTime {
  double fixed_us = 0;
  double spread_us = 0;

  [[nodiscard]] double us(double multiprocessors) const noexcept { return fixed_us + spread_us / multiprocessors; }
};

/// By least squares.
[[nodiscard]] StageTime fit_stage_time(std::span<const MeasuredTime> times);

/// What is asked of one GPU.
struct GpuLoad {
  double bits_per_second = 0;  // of frames
  std::size_t batch_bytes = 0;
  unsigned workers = 1;                // whose batches come there
  unsigned batches_in_flight = 1;      // there, of all workers
  std::chrono::nanoseconds latency{};  // bound; 0: none
  double transfer_us = 0;              // of a batch there and back

  [[nodiscard]] double batches_per_second() const noexcept {
    return bits_per_second / 8 / static_cast<double>(batch_bytes);
  }
};

/// The time that the kernels of a batch may take in all, in microseconds; 0 or less: there is none left. A batch keeps
/// up that is back before those in flight with it are due again, and keeps the bound if its packets, which have come
/// together for as long as all workers' batches take to be filled, are back in time. Of what transfers leave of that,
/// the kernels have half: the rest is waiting, for the copy engines and behind other batches' kernels.
[[nodiscard]] double time_for_kernels_us(const GpuLoad& load) noexcept;

/// What there is to share.
struct GpuRoom {
  std::uint32_t multiprocessors = 0;
  std::uint32_t least_share = 1;  // of a stage: with less it was not measured
};

/// The stages' shares, in multiprocessors. Nothing where the stages cannot keep that time with any, or would have more
/// of the device in all than there is at that rate: shares are then of no use.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> choose_shares(std::span<const StageTime> stages,
                                                                      const GpuRoom& room, double kernels_us,
                                                                      double batches_per_second);

/// All multiprocessors, a half, a quarter and an eighth of them: what times are measured with. Falling, without 0.
[[nodiscard]] std::vector<std::uint32_t> shares_to_measure(std::uint32_t multiprocessors);

/// Sets the shares of those functions that have times, by all of the above.
void choose_by_times(GpuShares& shares, std::uint32_t multiprocessors, const GpuLoad& load);

}  // namespace penstock::plan
