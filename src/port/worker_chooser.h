// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// RSS in software: assigns each frame to the worker of its flow, and fragments to the worker of their datagram's flow
// (fragment_table.h).

#pragma once

#include <optional>

#include "port/capture_reader.h"
#include "port/fragment_table.h"
#include "port/port.h"
#include "port/worker_key.h"

namespace penstock::port {

class WorkerChooser {
 public:
  explicit WorkerChooser(unsigned workers) : workers_(workers) {
    if (workers > 1) fragments_.emplace(workers);
  }

  /// Calls `use(worker, frame)` for the fragments that waited for this frame and for the frame itself, or keeps a copy
  /// of it if it is a fragment. `use` is `bool(unsigned, const CapturedFrame&) noexcept`. If it returns false, nothing
  /// more is delivered, and this returns false.
  template <typename Use>
  bool take(const CapturedFrame& frame, Use&& use) noexcept {
    if (!fragments_) return use(0U, frame);
    const WorkerKey key = worker_key_of(frame.bytes, frame.wire_length, frame.link_type, fragment_);
    if (fragments_->has_timed_out(frame.timestamp_ns) && !fragments_->give_up_old(frame.timestamp_ns, use))
      return false;
    if (!key.is_fragment) return use(worker_of_hash(key.hash, workers_), frame);
    return fragments_->take(key, fragment_, frame, use);
  }
  /// The end of the input: delivers the fragments that still wait.
  template <typename Use>
  bool finish(Use&& use) noexcept {
    return !fragments_ || fragments_->give_up_all(use);
  }

  /// Empty if there is only one worker. Thread-safe.
  [[nodiscard]] std::optional<FragmentCounts> counts() const noexcept {
    if (!fragments_) return std::nullopt;
    return fragments_->counts();
  }

 private:
  const unsigned workers_;
  std::optional<FragmentTable> fragments_;
  Fragment fragment_;  // scratch: the last fragment
};

}  // namespace penstock::port
