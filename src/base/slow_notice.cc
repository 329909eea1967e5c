// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/slow_notice.h"

#include <system_error>
#include <utility>

#include "base/log.h"

namespace penstock {

SlowNotice::SlowNotice(std::string line)
    : SlowNotice(std::chrono::seconds{2}, [line = std::move(line)] { log_info("{}", line); }) {}

SlowNotice::SlowNotice(std::chrono::nanoseconds after, std::function<void()> notify) {
  try {
    thread_ = std::thread([this, after, notify = std::move(notify)] {
      std::unique_lock lock(mutex_);
      if (!ended_.wait_for(lock, after, [this] { return is_over_; })) notify();
    });
  } catch (const std::system_error&) {  // no thread available: continue without the notice
  }
}

SlowNotice::~SlowNotice() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

}  // namespace penstock
