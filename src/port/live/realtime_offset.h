// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The system's clock, whose times are those of packets, and what to add to them to get a time of Batch::Clock.

#pragma once

#include <chrono>
#include <cstdint>

#include "packet/batch.h"

namespace penstock::port {

/// Now, in nanoseconds since the epoch, for frames without a time of their own.
[[nodiscard]] inline std::uint64_t system_time_ns() noexcept {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

/// Measured once a second, since the system's clock may be set or slewed.
class RealtimeOffset {
 public:
  [[nodiscard]] std::chrono::nanoseconds get() noexcept {
    const Batch::Clock::time_point now = Batch::Clock::now();
    if (now >= next_) {
      next_ = now + std::chrono::seconds{1};
      offset_ = now.time_since_epoch() - std::chrono::system_clock::now().time_since_epoch();
    }
    return offset_;
  }

 private:
  Batch::Clock::time_point next_{};
  std::chrono::nanoseconds offset_{};
};

}  // namespace penstock::port
