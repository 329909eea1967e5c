// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// CPU time of a thread: time that other threads and processes use does not count.

#pragma once

#include <chrono>
#include <ctime>

namespace penstock {

/// The CPU time of the calling thread.
[[nodiscard]] inline std::chrono::nanoseconds thread_time() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

}  // namespace penstock
