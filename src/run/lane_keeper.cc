// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/lane_keeper.h"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.h"
#include "base/stoppable_wait.h"
#include "base/units.h"

namespace penstock::run {

LaneKeeper::LaneKeeper(RemoteDevice& device, Renew renew, const Pauses& pauses)
    : device_(device), renew_(std::move(renew)), pauses_(pauses), pause_(pauses.first) {
  if (device_.is_lost()) {
    log_warning("{} is not there, or does not answer: the CPU does its work until it does", device_.name());
    lost_at_ = Clock::now();
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { keep(stop); });
}

void LaneKeeper::stop() noexcept {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void LaneKeeper::keep(const std::stop_token& stop) {
  constexpr std::chrono::milliseconds kLook{20};
  static_cast<void>(::pthread_setname_np(::pthread_self(), "lane-keeper"));
  if (lost_at_) find_again(stop);
  Clock::time_point connected_at = Clock::now();
  for (bool goes_on = true; goes_on;) {
    goes_on = wait_unless_stopped(stop, kLook);
    if (lost_at_ || !device_.is_lost()) continue;
    if (Clock::now() - connected_at >= pauses_.steady) pause_ = pauses_.first;
    note_loss();
    log_warning("{}: the CPU does the work of its lanes until there are new ones", device_.loss());
    find_again(stop);
    connected_at = Clock::now();
  }
}

/// Returns when the workers have lanes again, or when it is to stop.
void LaneKeeper::find_again(const std::stop_token& stop) {
  std::string told;  // each reason once
  while (wait_unless_stopped(stop, pause_)) {
    const auto connected = connect_again(stop);
    if (stop.stop_requested()) return;
    pause_ = std::min(2 * pause_, pauses_.longest);
    if (connected) {
      const auto without = note_return();
      log_info("connected to {}, after {} on the CPU", device_.name(), format_duration(without));
      return;
    }
    if (connected.error().incompatible) pause_ = pauses_.incompatible;
    std::string why = to_string(connected.error().errors.front());
    if (why == told) continue;
    log_warning("cannot connect to {} yet, and will try again: {}", device_.name(), why);
    told = std::move(why);
  }
}

tl::expected<void, NotConnected> LaneKeeper::connect_again(const std::stop_token& stop) {
  if (auto connected = device_.connect(stop); !connected) return connected;
  try {
    const std::stop_callback on_stop(stop, [this] { device_.disconnect(); });
    renew_(stop);
    return {};
  } catch (const std::exception& error) {  // for example, its tables do not fit into a smaller profile
    device_.disconnect();
    return tl::unexpected(NotConnected{{Error{{}, error.what(), "", ""}}});
  }
}

void LaneKeeper::note_loss() {
  const std::lock_guard lock(mutex_);
  lost_at_ = Clock::now();
  ++past_.losses;
}

std::chrono::nanoseconds LaneKeeper::note_return() {
  const std::lock_guard lock(mutex_);
  const std::chrono::nanoseconds without = Clock::now() - *lost_at_;
  lost_at_.reset();
  past_.without += without;
  return without;
}

report::RunReport::Proxy LaneKeeper::use() const {
  const std::lock_guard lock(mutex_);
  report::RunReport::Proxy use = past_;
  use.connected = !lost_at_;
  if (lost_at_) use.without += Clock::now() - *lost_at_;
  return use;
}

}  // namespace penstock::run
