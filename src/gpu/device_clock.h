// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A point in time known to both a device and the host. It converts the times of events with Timing::kOn to the host's
// clock. Belongs to the device that was current at construction. Immutable, so streams of all threads can use it.

#pragma once

#include <chrono>
#include <utility>

#include "gpu/cuda_error.h"
#include "gpu/stream.h"

namespace penstock::gpu {

class DeviceClock {
 public:
  using Clock = std::chrono::steady_clock;

  /// Blocks until the device is done; throws CudaError. The host sees an event some microseconds after it happens. So
  /// this records several events, keeps the one that was seen fastest, and assumes that it happened in the middle of
  /// that interval.
  DeviceClock() {
    constexpr int kTries = 8;
    const Stream stream;
    auto fastest = Clock::duration::max();
    for (int i = 0; i < kTries; ++i) {
      Event tried(Event::Timing::kOn);
      const auto before = Clock::now();
      if (!tried.record(stream)) throw CudaError(0, "cannot read the clock of a GPU");
      tried.wait();
      const auto took = Clock::now() - before;
      if (took >= fastest) continue;
      fastest = took;
      time_ = before + took / 2;
      event_ = std::move(tried);
    }
  }

  [[nodiscard]] const Event& event() const noexcept { return event_; }
  /// When the event happened.
  [[nodiscard]] Clock::time_point time() const noexcept { return time_; }

 private:
  Event event_{Event::Timing::kOn};
  Clock::time_point time_;
};

}  // namespace penstock::gpu
