// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A message for a step that usually takes no time and cannot be interrupted, such as a call into a driver: it is
// logged if the step takes long, so that the user knows what the program waits for.

#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace penstock {

class SlowNotice {
 public:
  /// Logs `line` if this object still exists after two seconds.
  explicit SlowNotice(std::string line);
  /// Calls `tell` once, in another thread, if this object still exists after that time.
  SlowNotice(std::chrono::nanoseconds after, std::function<void()> notify);
  SlowNotice(const SlowNotice&) = delete;
  SlowNotice& operator=(const SlowNotice&) = delete;
  ~SlowNotice();

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace penstock
