// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A moment that a device and the host have in common: by it, events with Timing::kOn have times of the host's clock.
// It belongs to the device that was current when it was made. Never changed: streams of all threads count from it.

#pragma once

#include <chrono>
#include <utility>

#include "gpu/cuda_error.h"
#include "gpu/stream.h"

namespace penstock::gpu {

class DeviceClock {
 public:
  using Clock = std::chrono::steady_clock;

  /// Waits for the device; throws CudaError. What the host sees of an event comes some microseconds after it: of
  /// several the one is kept that was seen fastest, and taken for the middle of that time.
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
  /// When it happened.
  [[nodiscard]] Clock::time_point time() const noexcept { return time_; }

 private:
  Event event_{Event::Timing::kOn};
  Clock::time_point time_;
};

}  // namespace penstock::gpu
