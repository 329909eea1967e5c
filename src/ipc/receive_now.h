// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Receives a message with its descriptors.

#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

namespace penstock::ipc {

/// Linux sends at most so many with a message (SCM_MAX_FD). With room for fewer, it closes the others before the
/// receiver knows of them.
inline constexpr std::size_t kMostSent = 253;

struct Arrived {
  ssize_t bytes = 0;  // -1: none; errno says why
  int flags = 0;      // MSG_TRUNC, MSG_CTRUNC
  bool has_control = false;
};

/// Receives without waiting. Calls `take` with each descriptor, which then owns it.
template <typename Take>
Arrived receive_now(int socket, std::span<std::byte> bytes, Take take) {
  // With room for credentials, too.
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(kMostSent * sizeof(int))> control;
  iovec part{bytes.data(), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t count = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count < 0) return {count, 0, false};
  for (cmsghdr* rights = CMSG_FIRSTHDR(&header); rights != nullptr; rights = CMSG_NXTHDR(&header, rights)) {
    if (rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; at + sizeof(int) <= rights->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(rights) + at, sizeof descriptor);
      take(descriptor);
    }
  }
  return {count, header.msg_flags, header.msg_controllen > 0};
}

}  // namespace penstock::ipc
