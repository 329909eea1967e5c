// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How a thread of its own (std::jthread) passes the time until its next look, and still ends at once.

#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace penstock {

/// Waits for this time, or until the thread is to stop. False: it is to stop.
inline bool wait_unless_stopped(const std::stop_token& stop, std::chrono::nanoseconds time) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace penstock
