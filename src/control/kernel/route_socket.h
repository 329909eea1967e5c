// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A netlink socket to the kernel's tables, for routing by default. It believes only the kernel: messages of other
// processes are left out. Owns the socket and its buffer.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "port/live/file_descriptor.h"

namespace penstock::control {

class RouteSocket {
 public:
  /// In the calling thread's network namespace. `protocol`: NETLINK_ROUTE, if 0, or another one.
  [[nodiscard]] static Result<RouteSocket> open(int protocol = 0);
  /// From now on, the kernel sends its changes of these groups (RTNLGRP_LINK …). They wait in a buffer of so many
  /// bytes, as far as the process may have that.
  [[nodiscard]] Result<void> subscribe(std::span<const unsigned> groups, int buffer_bytes);

  enum class Received : std::uint8_t {
    messages,
    nothing,  // none is there
    lost,     // the buffer was full: messages are lost
    failed,   // errno says why
  };
  /// Receives what has come, with `wait` once something has. The messages are valid until the next call.
  [[nodiscard]] Received receive(std::span<const std::uint8_t>& messages, bool wait = false);

  /// Asks for all links, routes … (RTM_GETLINK …) of a family (AF_UNSPEC: all). The answers have the sequence number
  /// `sequence`, and end with NLMSG_DONE or NLMSG_ERROR.
  [[nodiscard]] bool ask_for_all(std::uint16_t type, std::uint8_t family);
  [[nodiscard]] std::uint32_t sequence() const noexcept { return sequence_; }
  /// Sends a request. The kernel's answer, if any, is to be received.
  [[nodiscard]] bool send(std::span<const std::uint8_t> request);

  [[nodiscard]] int fd() const noexcept { return socket_.get(); }

 private:
  port::FileDescriptor socket_;
  std::vector<std::uint32_t> buffer_;  // aligned like messages
  std::uint32_t sequence_ = 0;
};

}  // namespace penstock::control
