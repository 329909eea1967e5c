// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The total rate of several cores: one thread on each, all started at the same time.

#pragma once

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

namespace penstock::experiments {

struct Timing {
  unsigned repeats = 1;
  std::chrono::nanoseconds duration{};      // of one repeat
  const std::atomic<bool>* stop = nullptr;  // ends the measurement early
};

/// Returns the sum of the threads' rates for each repeat. A thread creates its worker with `make(core)` itself, so that
/// its memory is local. `worker()` does a piece of work, much shorter than a repeat, and returns its amount; it is
/// called until the time is over. A warm-up of a fifth of a repeat comes first.
template <typename MakeWorker>
[[nodiscard]] std::vector<double> rates_on_cores(unsigned cores, const Timing& timing, MakeWorker make) {
  using Clock = std::chrono::steady_clock;
  std::barrier together(static_cast<std::ptrdiff_t>(cores));
  std::vector<std::vector<double>> rates(cores);
  const auto work = [&](unsigned core) {
    auto worker = make(core);
    for (unsigned repeat = 0; repeat <= timing.repeats; ++repeat) {
      const auto duration = repeat == 0 ? timing.duration / 5 : timing.duration;
      together.arrive_and_wait();
      const auto start = Clock::now();
      double done = 0;
      do {
        done += static_cast<double>(worker());
      } while (Clock::now() - start < duration && !timing.stop->load(std::memory_order_relaxed));
      if (repeat > 0) rates[core].push_back(done / std::chrono::duration<double>(Clock::now() - start).count());
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned core = 0; core < cores; ++core) threads.emplace_back(work, core);
  }
  std::vector<double> sums(timing.repeats);
  for (const std::vector<double>& of_core : rates) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += of_core[i];
  }
  return sums;
}

}  // namespace penstock::experiments
