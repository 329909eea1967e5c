// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tells threads that wait in poll(2) to wait no longer. Owns its descriptor.

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

  /// Any thread, as often as it likes.
  void signal() noexcept { static_cast<void>(::eventfd_write(fd_, 1)); }
  /// Readable once signalled, for ever.
  [[nodiscard]] int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

}  // namespace penstock::port
