// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "ipc/foreign_descriptor.h"

#include <sys/socket.h>

#include <array>
#include <exception>
#include <utility>
#include <vector>

#include "ipc/descriptors_of.h"

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
  std::array<char, 4096> bytes{};
  for (;;) {
    ControlBuffer control;
    iovec part{bytes.data(), bytes.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.bytes.data();
    header.msg_controllen = control.bytes.size();
    const ssize_t count = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count < 0 || header.msg_controllen == 0 || (is_stream && count == 0)) return;
    for_each_descriptor(header, [&](int descriptor) { to.emplace_back(descriptor); });
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
