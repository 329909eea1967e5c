// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How long a thread has had a processor: what others take of the machine does not count.

#pragma once

#include <chrono>
#include <ctime>

namespace penstock {

/// Of the thread that asks.
[[nodiscard]] inline std::chrono::nanoseconds thread_time() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

}  // namespace penstock
