// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/set_up_watch.h"

#include <pthread.h>

#include <chrono>
#include <csignal>

#include "base/log.h"
#include "base/stoppable_wait.h"

namespace penstock::run {

void SetUpWatch::watch(const std::stop_token& over, const std::atomic<bool>& stop, RemoteDevice* remote) {
  constexpr std::chrono::milliseconds kLook{20};
  constexpr std::chrono::seconds kPatience{10};
  static_cast<void>(::pthread_setname_np(::pthread_self(), "set-up-watch"));
  if (over.stop_requested()) return;
  while (!stop.load()) {
    if (!wait_unless_stopped(over, kLook)) return;
  }
  if (remote != nullptr) remote->disconnect();
  if (!wait_unless_stopped(over, kPatience)) return;
  log_error("the run was stopped {} s ago, and still waits for its device or for memory: the process ends",
            kPatience.count());
  std::raise(SIGTERM);
}

}  // namespace penstock::run
