// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/watchdog.h"

#include <fmt/format.h>
#include <pthread.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/capabilities.h"
#include "base/log.h"
#include "base/stoppable_wait.h"
#include "base/units.h"

namespace penstock::control {

namespace {

using Clock = std::chrono::steady_clock;
// Idle workers have a pulse at least every 20 ms.
constexpr std::chrono::microseconds kShortestInterval = std::chrono::milliseconds{50};

}  // namespace

Watchdog::Watchdog(std::function<std::vector<run::Pulse>()> pulses) : pulses_(std::move(pulses)) {
  std::uint64_t limit_us = 0;
  if (::sd_watchdog_enabled(0, &limit_us) <= 0) return;
  // A late look and a lost message are no hang.
  interval_ = std::max(std::chrono::microseconds(limit_us / 4), kShortestInterval);
  thread_ = std::jthread([this](const std::stop_token& done) { watch(done); });
}

void Watchdog::watch(const std::stop_token& done) {
  static_cast<void>(::pthread_setname_np(::pthread_self(), "watchdog"));
  static_cast<void>(keep_only({}));
  do look();
  while (wait_unless_stopped(done, interval_));
}

/// Sends a keep-alive unless a thread has had no pulse since the last look.
void Watchdog::look() {
  const auto pulses = pulses_();
  std::string hanging;
  for (std::size_t i = 0; i < std::min(pulses.size(), before_.size()); ++i) {
    if (pulses[i].count && pulses[i].count == before_[i].count)
      hanging += (hanging.empty() ? "" : ", ") + pulses[i].thread;
  }
  before_ = pulses;
  const Clock::time_point now = Clock::now();
  if (hanging.empty()) {
    if (hangs_since_) {
      const std::string text =
          fmt::format("all workers make progress again, after {}", format_duration(now - *hangs_since_));
      log_info("{}", text);
      ::sd_notify(0, ("STATUS=" + text).c_str());
    }
    hangs_since_.reset();
    ::sd_notify(0, "WATCHDOG=1");
    return;
  }
  if (hangs_since_) return;
  hangs_since_ = now - interval_;
  const std::string text =
      fmt::format("{}: no progress; the service manager gets no keep-alives until there is some", hanging);
  log_warning("{}", text);
  ::sd_notify(0, ("STATUS=" + text).c_str());
}

}  // namespace penstock::control
