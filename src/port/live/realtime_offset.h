// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What to add to a time of the system's clock to get a time of Batch::Clock. Measured once a second, since the system's
// clock may be set or slewed.

#pragma once

#include <chrono>

#include "packet/batch.h"

namespace penstock::port {

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
