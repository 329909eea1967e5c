// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/set_up_watch.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>

#include "base/log.h"

namespace penstock::run {

void SetUpWatch::watch(const std::stop_token& over, const std::atomic<bool>& stop, RemoteDevice* remote) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLook{20};
  constexpr std::chrono::seconds kPatience{10};
  static_cast<void>(::pthread_setname_np(::pthread_self(), "set-up-watch"));
  std::mutex mutex;
  std::condition_variable_any ended;
  std::unique_lock lock(mutex);
  const auto wait_until = [&](auto condition, Clock::time_point end) {
    while (!over.stop_requested() && !condition() && Clock::now() < end)
      ended.wait_for(lock, over, kLook, [] { return false; });
    return !over.stop_requested();
  };
  if (!wait_until([&] { return stop.load(); }, Clock::time_point::max())) return;
  if (remote != nullptr) remote->disconnect();
  if (!wait_until([] { return false; }, Clock::now() + kPatience)) return;
  log_error("the run was stopped {} s ago, and still waits for its device or for memory: the process ends",
            kPatience.count());
  std::raise(SIGTERM);
}

}  // namespace penstock::run
