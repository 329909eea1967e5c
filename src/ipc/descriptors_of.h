// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The descriptors of a message that is received.

#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstring>

namespace penstock::ipc {

/// Linux sends at most so many with a message (SCM_MAX_FD). With room for fewer, it closes the others before the
/// receiver knows of them.
inline constexpr std::size_t kMostSent = 253;

/// With room for credentials, too.
struct ControlBuffer {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(kMostSent * sizeof(int))> bytes;
};

/// Calls `take` with each, which then owns it.
template <typename Take>
void for_each_descriptor(msghdr& header, Take take) {
  for (cmsghdr* rights = CMSG_FIRSTHDR(&header); rights != nullptr; rights = CMSG_NXTHDR(&header, rights)) {
    if (rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; at + sizeof(int) <= rights->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(rights) + at, sizeof descriptor);
      take(descriptor);
    }
  }
}

}  // namespace penstock::ipc
