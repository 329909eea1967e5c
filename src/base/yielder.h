// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How a thread that polls lets others run.

#pragma once

#include <chrono>
#include <thread>

namespace penstock {

/// Of one thread. Yields the core while nobody else wants it, which is soon over. If others have run meanwhile, there
/// are fewer cores than threads, and it sleeps for some time instead: from Linux 6.18 on, a thread that only yields
/// loses a part of its time with each call, and may not run for seconds beside threads that work.
class Yielder {
 public:
  void yield() noexcept {
    if (sleeps_ > 0) {
      --sleeps_;
      std::this_thread::sleep_for(kSleep);
      return;
    }
    const auto begun = std::chrono::steady_clock::now();
    std::this_thread::yield();
    if (std::chrono::steady_clock::now() - begun > kOthersRan) sleeps_ = kSleeps;
  }

 private:
  static constexpr std::chrono::microseconds kOthersRan{100}, kSleep{50};
  static constexpr unsigned kSleeps = 16;
  unsigned sleeps_ = 0;
};

}  // namespace penstock
