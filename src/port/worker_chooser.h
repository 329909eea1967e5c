// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// RSS in software: gives each frame to the worker of its flow, fragments to the worker of their datagram's flow
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

  /// Calls `use(worker, frame)` for the frame, after those that waited for it; or keeps a copy, if it is a fragment.
  /// `use`: bool(unsigned, const CapturedFrame&) noexcept; once it returns false, nothing more is given, and this
  /// returns false.
  template <typename Use>
  bool take(const CapturedFrame& frame, Use&& use) noexcept {
    if (!fragments_) return use(0U, frame);
    const WorkerKey key = worker_key_of(frame.bytes, frame.wire_length, frame.link_type, fragment_);
    if (fragments_->has_timed_out(frame.timestamp_ns) && !fragments_->give_up_old(frame.timestamp_ns, use))
      return false;
    if (!key.is_fragment) return use(worker_of_hash(key.hash, workers_), frame);
    return fragments_->take(key, fragment_, frame, use);
  }
  /// The input's end: gives the fragments that still wait.
  template <typename Use>
  bool finish(Use&& use) noexcept {
    return !fragments_ || fragments_->give_up_all(use);
  }

  /// Nothing with one worker. Any thread may ask.
  [[nodiscard]] std::optional<FragmentCounts> counts() const noexcept {
    if (!fragments_) return std::nullopt;
    return fragments_->counts();
  }

 private:
  const unsigned workers_;
  std::optional<FragmentTable> fragments_;
  Fragment fragment_;  // the last one
};

}  // namespace penstock::port
