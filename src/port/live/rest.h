// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Lets a receive queue rest, and go on: frames then wait in the kernel. One thread asks, and the queue's worker notes
// when the queue rests, and does not touch its descriptor from then on.

#pragma once

#include <poll.h>

#include <atomic>
#include <vector>

#include "port/stop_event.h"

namespace penstock::port {

class Rest {
 public:
  // From any thread.

  void ask() noexcept {
    // In this order: a worker that notes it late, for the last time that it was asked, sees this at its next poll.
    asked_.store(true);
    rests_.store(false);
    changed_.signal();
  }
  void end() noexcept {
    asked_.store(false);
    changed_.signal();
  }
  /// What the worker has written before is visible to the caller.
  [[nodiscard]] bool rests() const noexcept { return rests_.load(); }

  // By the worker.

  /// No further frame is to be opened.
  [[nodiscard]] bool asked() const noexcept { return asked_.load(std::memory_order_acquire); }
  /// At the end of each poll. `done`: no frame is open, and none is lent.
  void note(bool done) noexcept {
    if (done && asked_.load()) rests_.store(true);
  }
  /// Adds what wakes the worker. The queue's own descriptor is to be added only if it does not rest. False: it is to
  /// rest, and is to be polled once more.
  [[nodiscard]] bool add_wake_ups(std::vector<pollfd>& to) noexcept {
    changed_.clear();
    to.push_back({changed_.fd(), POLLIN, 0});
    return !asked_.load() || rests_.load();
  }

 private:
  std::atomic<bool> asked_{false}, rests_{false};
  StopEvent changed_;
};

}  // namespace penstock::port
