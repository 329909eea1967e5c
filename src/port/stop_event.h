// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// An event that interrupts threads blocked in poll(2). Owns its descriptor.

#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

namespace penstock::port {

class StopEvent {
 public:
  StopEvent() noexcept : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  StopEvent(const StopEvent&) = delete;
  StopEvent& operator=(const StopEvent&) = delete;
  ~StopEvent() {
    if (fd_ >= 0) ::close(fd_);
  }

  /// Thread-safe; may be called several times.
  void signal() noexcept { static_cast<void>(::eventfd_write(fd_, 1)); }
  /// Readable once the event is signalled; stays readable until `clear`.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  void clear() noexcept {
    eventfd_t value = 0;
    static_cast<void>(::eventfd_read(fd_, &value));
  }

 private:
  int fd_;
};

}  // namespace penstock::port
