// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "experiments/core_rates.h"
#include "experiments/offload/rates.h"

namespace penstock::experiments {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// How many keys the engine gets at once: the whole batch, unless the clock would then be checked too rarely.
std::size_t piece_of(const LookupEngine& engine, std::size_t batch, std::vector<std::uint32_t>& values) {
  constexpr std::size_t kLeast = 256;
  constexpr double kMostSeconds = 0.01;
  const auto start = Clock::now();
  engine.look_up(0, kLeast, values.data());
  const double seconds = seconds_since(start);
  return seconds * static_cast<double>(batch) / kLeast <= kMostSeconds
             ? batch
             : std::min(batch, kLeast * std::max<std::size_t>(1, static_cast<std::size_t>(kMostSeconds / seconds)));
}

/// One thread, with its position among the keys and its result buffer.
class LookupLoop {
 public:
  LookupLoop(const LookupEngine& engine, std::size_t first, std::size_t batch)
      : engine_(engine),
        at_(first),
        values_(std::max<std::size_t>(batch, 256)),
        piece_(piece_of(engine, batch, values_)) {}

  /// Looks up at most one batch; returns the number of keys.
  std::size_t operator()() {
    const std::size_t count = std::min(piece_, kKeys - at_);
    engine_.look_up(at_, count, values_.data());
    at_ = (at_ + count) % kKeys;
    return count;
  }

 private:
  const LookupEngine& engine_;
  std::size_t at_;
  std::vector<std::uint32_t> values_;
  std::size_t piece_;
};

Result<void> check(const LookupWork& work, const LookupEngine& engine) {
  for (std::size_t i = 0; i < kKeys; i += kSampleStep) {
    std::uint32_t found = 0;
    engine.look_up(i, 1, &found);
    if (found == work.expected(i)) continue;
    return failure({{},
                    fmt::format("the CPU's result for key {} is wrong", i),
                    std::to_string(found),
                    std::to_string(work.expected(i))});
  }
  return {};
}

}  // namespace

Result<std::vector<double>> measure_on_cores(const LookupWork& work, const LookupEngine& engine, unsigned cores,
                                             std::size_t batch, const Timing& timing) {
  auto sums =
      rates_on_cores(cores, timing, [&](unsigned core) { return LookupLoop(engine, kKeys / cores * core, batch); });
  if (const auto right = check(work, engine); !right) return tl::unexpected(right.error());
  return sums;
}

}  // namespace penstock::experiments
