// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Keep-alives for the service manager's watchdog (WatchdogSec of systemd): sent only while every thread on the packets'
// way makes progress, or has nothing to do. If one hangs, the manager ends and restarts the process. A long reload
// stops no keep-alives, because packets flow meanwhile.

#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "run/run.h"

namespace penstock::control {

class Watchdog {
 public:
  /// If the service manager expects keep-alives (WATCHDOG_USEC, WATCHDOG_PID), starts a thread that sends them.
  /// `pulses`: those of the run (Run::pulses), called in that thread. Throws std::system_error if the system allows no
  /// more threads.
  explicit Watchdog(std::function<std::vector<run::Pulse>()> pulses);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch(const std::stop_token& done);
  void look();

  const std::function<std::vector<run::Pulse>()> pulses_;
  std::chrono::microseconds interval_{};
  std::vector<run::Pulse> before_;  // at the last look
  std::optional<std::chrono::steady_clock::time_point> hangs_since_;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace penstock::control
