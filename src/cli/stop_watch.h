// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Passes the flag of a stop signal on to a descriptor, for a command whose only thread may block on a pipe.

#pragma once

#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>

#include "base/stoppable_wait.h"
#include "port/stop_event.h"

namespace penstock::cli {

class StopWatch {
 public:
  /// `stop` must outlive the watch.
  explicit StopWatch(const std::atomic<bool>& stop)
      : thread_([this, &stop](const std::stop_token& done) {
          do {
            if (stop.load()) event_.signal();
          } while (wait_unless_stopped(done, std::chrono::milliseconds{50}));
        }) {}

  /// Readable once the flag is set.
  [[nodiscard]] int fd() const noexcept { return event_.fd(); }

 private:
  port::StopEvent event_;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace penstock::cli
