// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "ipc/foreign_descriptor.h"

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <exception>
#include <utility>
#include <vector>

#include "ipc/receive_now.h"

namespace penstock::ipc {

namespace {

using port::FileDescriptor;

/// -1: it has no such option.
int option(int socket, int name) noexcept {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(socket, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

/// Connections that nobody has accepted, and descriptors that nobody has received. Waits for nothing, whatever others
/// do: the socket is shut down.
void take_all(int socket, std::vector<FileDescriptor>& to) {
  for (;;) {
    FileDescriptor next(::accept4(socket, nullptr, nullptr, SOCK_CLOEXEC));
    if (!next) break;
    to.push_back(std::move(next));
  }
  // So that an empty message is not taken for the end: each message has credentials then. A stream has none that are
  // empty, and credentials also at its end.
  const bool is_stream = option(socket, SO_TYPE) == SOCK_STREAM;
  const int on = 1;
  static_cast<void>(::setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
  std::array<std::byte, 4096> bytes{};
  for (;;) {
    const Arrived arrived = receive_now(socket, bytes, [&](int descriptor) { to.emplace_back(descriptor); });
    if (arrived.bytes < 0 || !arrived.has_control || (is_stream && arrived.bytes == 0)) return;
  }
}

}  // namespace

bool stop_lingering(int descriptor) noexcept {
  const linger none{};
  return ::setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &none, sizeof none) == 0;
}

void close_foreign(FileDescriptor descriptor) noexcept {
  try {
    std::vector<FileDescriptor> left;
    left.push_back(std::move(descriptor));
    while (!left.empty()) {
      const FileDescriptor next = std::move(left.back());
      left.pop_back();
      if (!stop_lingering(next.get()) || option(next.get(), SO_DOMAIN) != AF_UNIX) continue;
      static_cast<void>(::shutdown(next.get(), SHUT_RDWR));
      take_all(next.get(), left);
    }
  } catch (const std::exception&) {  // there is no memory: they are closed as they are
  }
}

}  // namespace penstock::ipc
