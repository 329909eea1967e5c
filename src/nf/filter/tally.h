// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Counts of a filter over all workers, and over reloads that keep the filter. Each stage counts in cells of its own,
// which only its worker writes and any thread may read. When a stage ends, its counts stay.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace penstock::filter {

struct Count {
  std::uint64_t packets = 0, bytes = 0;                  // that the filter matched
  std::uint64_t decided_packets = 0, decided_bytes = 0;  // those of them that no filter before it matched
};

/// One stage's counts of one filter.
class Cell {
 public:
  void add_match(std::uint64_t bytes) noexcept {
    add(packets_, 1);
    add(bytes_, bytes);
  }
  void add_decision(std::uint64_t bytes) noexcept {
    add(decided_packets_, 1);
    add(decided_bytes_, bytes);
  }
  void add_to(Count& sum) const noexcept {
    sum.packets += packets_.load(std::memory_order_relaxed);
    sum.bytes += bytes_.load(std::memory_order_relaxed);
    sum.decided_packets += decided_packets_.load(std::memory_order_relaxed);
    sum.decided_bytes += decided_bytes_.load(std::memory_order_relaxed);
  }

 private:
  static void add(std::atomic<std::uint64_t>& to, std::uint64_t more) noexcept {
    to.store(to.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }

  std::atomic<std::uint64_t> packets_ = 0, bytes_ = 0, decided_packets_ = 0, decided_bytes_ = 0;
};

/// Thread-safe. Shared by the functions of successive epochs that have the filter.
class Tally {
 public:
  void add(const Cell& cell) {
    const std::lock_guard lock(mutex_);
    cells_.push_back(&cell);
  }
  void end(const Cell& cell) noexcept {
    const std::lock_guard lock(mutex_);
    cells_.erase(std::remove(cells_.begin(), cells_.end(), &cell), cells_.end());
    cell.add_to(ended_);
  }
  [[nodiscard]] Count sum() const {
    const std::lock_guard lock(mutex_);
    Count sum = ended_;
    for (const Cell* cell : cells_) cell->add_to(sum);
    return sum;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<const Cell*> cells_;
  Count ended_;
};

/// The cells of one stage, one for each tally, in their order.
class StageCounters {
 public:
  explicit StageCounters(std::span<const std::shared_ptr<Tally>> tallies)
      : tallies_(tallies.begin(), tallies.end()), cells_(tallies.size()) {
    for (std::size_t i = 0; i < cells_.size(); ++i) tallies_[i]->add(cells_[i]);
  }
  StageCounters(const StageCounters&) = delete;
  StageCounters& operator=(const StageCounters&) = delete;
  ~StageCounters() {
    for (std::size_t i = 0; i < cells_.size(); ++i) tallies_[i]->end(cells_[i]);
  }

  [[nodiscard]] Cell& operator[](std::size_t i) noexcept { return cells_[i]; }

 private:
  std::vector<std::shared_ptr<Tally>> tallies_;
  std::vector<Cell> cells_;
};

}  // namespace penstock::filter
