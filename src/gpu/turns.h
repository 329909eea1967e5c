// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Turns: work of several streams that runs one behind the other, in the order in which it is enqueued, while all else
// of the streams overlaps. What stages of one worker need that count on from batch to batch in device memory. It costs
// a stream the wait for one event, and nothing where there is one stream.

#pragma once

#include <algorithm>
#include <vector>

#include "gpu/stream.h"

namespace penstock::gpu {

class Turn;

/// What those share that take turns. Outlives them. Used by one thread at a time, as the stages of a worker are.
class Turns {
 private:
  friend class Turn;
  std::vector<Turn*> all_;
  const Turn* last_ = nullptr;
};

/// One stream's part; it belongs to the device that was current when it was made. Throws CudaError when it is made.
class Turn {
 public:
  explicit Turn(Turns& turns) : turns_(turns) { turns.all_.push_back(this); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  /// Nothing of the stream is on the device any more.
  ~Turn() {
    std::erase(turns_.all_, this);
    if (turns_.last_ == this) turns_.last_ = before_;
    for (Turn* const other : turns_.all_) {
      if (other->before_ == this) other->before_ = nullptr;
    }
  }

  /// What is enqueued in `stream` from here to `end` runs behind what was enqueued in the turn before, and before what
  /// will be in the next one; also while launches are collected. False when the driver refuses.
  [[nodiscard]] bool begin(const Stream& stream) noexcept {
    // Once more where the last one was this: what was collected then may never have been launched.
    if (turns_.last_ != this) before_ = turns_.last_;
    return before_ == nullptr || stream.start_after(before_->end_);
  }
  [[nodiscard]] bool end(const Stream& stream) noexcept {
    turns_.last_ = this;
    return end_.record(stream);
  }
  /// What was enqueued last may never run (`GpuStage::abandoned`): who comes next is behind the turn before.
  void withdraw() noexcept {
    if (turns_.last_ == this) turns_.last_ = before_;
  }

 private:
  Turns& turns_;
  Event end_;
  const Turn* before_ = nullptr;
};

}  // namespace penstock::gpu
