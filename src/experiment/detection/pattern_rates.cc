// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiment/detection/pattern_rates.h"

#include <barrier>
#include <thread>

namespace penstock::experiment {

Result<std::vector<double>> measure_hyperscan(std::span<const nids::Literal> literals,
                                              std::span<const std::uint8_t> text, std::size_t block, unsigned cores,
                                              unsigned repeats, std::chrono::nanoseconds duration,
                                              const std::atomic<bool>& stop) {
  using Clock = std::chrono::steady_clock;
  auto matcher = nids::make_pattern_matcher(nids::MatcherKind::hyperscan, literals);
  if (!matcher) return tl::unexpected(std::move(matcher.error()));
  std::vector<std::vector<double>> rates(cores);
  std::barrier together(static_cast<std::ptrdiff_t>(cores));
  const auto scan_for = [&](unsigned core) {
    const auto scratch = (*matcher)->make_scratch();
    nids::LiteralSet found(literals.size());
    std::size_t at = text.size() / cores * core;
    for (unsigned repeat = 0; repeat <= repeats; ++repeat) {  // the first warms up
      together.arrive_and_wait();
      const auto start = Clock::now();
      double scanned = 0;
      do {
        for (unsigned i = 0; i < 256; ++i) {
          if (at + block > text.size()) at = 0;
          found.clear();
          (*matcher)->scan(text.subspan(at, block), scratch.get(), found);
          at += block;
          scanned += static_cast<double>(block);
        }
      } while (Clock::now() - start < duration && !stop.load(std::memory_order_relaxed));
      if (repeat > 0) rates[core].push_back(scanned / std::chrono::duration<double>(Clock::now() - start).count());
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned core = 1; core < cores; ++core) threads.emplace_back(scan_for, core);
    scan_for(0);
  }
  std::vector<double> sums(repeats);
  for (const auto& of_core : rates) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += of_core[i];
  }
  return sums;
}

}  // namespace penstock::experiment
