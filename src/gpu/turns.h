// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Turns order parts of the work of several streams: these parts run one after the other, in the order in which they are
// enqueued, while the rest of the streams' work overlaps. The stages of one worker use them for state in device memory
// that continues from batch to batch. The cost is a wait for one event per turn, and nothing with a single stream.

#pragma once

#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "gpu/stream.h"

namespace penstock::gpu {

class Turn;

/// The state shared by streams that take turns. Must outlive their `Turn`s. The streams are used by one thread at a
/// time, like the stages of a worker. Another thread may make and destroy `Turn`s meanwhile, as a reload does.
class Turns {
 private:
  friend class Turn;
  using Events = std::vector<std::unique_ptr<Event>>;

  std::mutex mutex_;  // guards the members below; contended only during a reload
  std::vector<Turn*> all_;
  const Turn* last_ = nullptr;
  // Events of turns that have ended. A batch that has been collected but not launched may still wait for them, so they
  // are kept until stages that were made later have ended, too.
  Events ended_, ended_before_;
};

/// One stream's turn. Belongs to the device that was current when it was made. The constructor throws CudaError.
class Turn {
 public:
  explicit Turn(Turns& turns) : turns_(turns), end_(std::make_unique<Event>()) {
    const std::lock_guard lock(turns_.mutex_);
    turns_.all_.push_back(this);
    std::ranges::move(turns_.ended_, std::back_inserter(turns_.ended_before_));
    turns_.ended_.clear();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  /// None of the stream's work may be on the device any more.
  ~Turn() {
    Turns::Events old;  // destroyed after the lock is released
    const std::lock_guard lock(turns_.mutex_);
    std::erase(turns_.all_, this);
    if (turns_.last_ == this) turns_.last_ = before_;
    for (Turn* const other : turns_.all_) {
      if (other->before_ == this) other->before_ = nullptr;
    }
    turns_.ended_.push_back(std::move(end_));
    old.swap(turns_.ended_before_);
  }

  /// Work enqueued in `stream` from here to `end` runs after that of the previous turn, and before that of the next
  /// one. Also works while launches are collected. False if the driver refuses.
  [[nodiscard]] bool begin(const Stream& stream) noexcept {
    const std::lock_guard lock(turns_.mutex_);
    // If this was also the last turn, repeat its wait: its collected work may never have been launched.
    if (turns_.last_ != this) before_ = turns_.last_;
    return before_ == nullptr || stream.start_after(*before_->end_);
  }
  [[nodiscard]] bool end(const Stream& stream) noexcept {
    const std::lock_guard lock(turns_.mutex_);
    turns_.last_ = this;
    return end_->record(stream);
  }
  /// The work of this turn may never run (`GpuStage::abandoned`), so the next one waits for the turn before it.
  void withdraw() noexcept {
    const std::lock_guard lock(turns_.mutex_);
    if (turns_.last_ == this) turns_.last_ = before_;
  }

 private:
  Turns& turns_;
  std::unique_ptr<Event> end_;
  const Turn* before_ = nullptr;
};

}  // namespace penstock::gpu
