// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Owns a file descriptor.

#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace penstock::port {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  /// -1: none.
  explicit FileDescriptor(int fd) noexcept : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  /// Another descriptor of the same file; none if the system has none left.
  [[nodiscard]] FileDescriptor duplicate() const noexcept { return FileDescriptor(::fcntl(fd_, F_DUPFD_CLOEXEC, 0)); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace penstock::port
