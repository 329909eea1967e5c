// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Lets a run be stopped while it is set up, which waits for devices, for their first batches, and for memory.

#pragma once

#include <atomic>
#include <stop_token>
#include <thread>

#include "run/lane_factory.h"

namespace penstock::run {

/// While it exists and `stop` is set: leaves the device of another process, so that what waits for that fails at once.
/// A device of this process cannot be left, so the set-up goes on; if it takes too long, the process ends as by
/// SIGTERM. No packet has been received by then.
class SetUpWatch {
 public:
  /// Borrows both; `remote` may be null. Throws std::system_error.
  SetUpWatch(const std::atomic<bool>& stop, RemoteDevice* remote)
      : thread_([&stop, remote](const std::stop_token& over) { watch(over, stop, remote); }) {}

 private:
  static void watch(const std::stop_token& over, const std::atomic<bool>& stop, RemoteDevice* remote);

  std::jthread thread_;
};

}  // namespace penstock::run
