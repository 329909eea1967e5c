// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies of a connection, for readers in other threads and for the next run.

#pragma once

#include <algorithm>
#include <cstdint>

#include "conntrack/connection.h"
#include "packet/ip.h"

namespace penstock::conntrack {

/// What an operator sees of a connection.
struct Record {
  Tuple original, reply;
  std::uint64_t remaining_ns = 0;  // until it expires
  std::uint32_t mark = 0;
  std::uint16_t status = 0;  // of Connection
  TcpState tcp_state = TcpState::none;

  [[nodiscard]] bool seen_reply() const noexcept { return (status & Connection::kSeenReply) != 0; }
  [[nodiscard]] bool assured() const noexcept { return (status & Connection::kAssured) != 0; }
};

[[nodiscard]] inline Record record_of(const Connection& connection, std::uint64_t remaining_ns) noexcept {
  return {.original = connection.original,
          .reply = connection.reply,
          .remaining_ns = remaining_ns,
          .mark = connection.mark,
          .status = connection.status,
          .tcp_state = connection.tcp_state};
}

/// All that a later run needs to go on with a connection.
struct SavedConnection {
  Record record;
  TcpTracking tcp;                     // of TCP
  std::uint64_t udp_stream_in_ns = 0;  // of UDP: until it may be a stream
};

[[nodiscard]] inline SavedConnection saved_of(const Connection& connection, std::uint64_t remaining_ns) noexcept {
  SavedConnection saved;
  saved.record = record_of(connection, remaining_ns);
  if (connection.original.protocol == ip_protocol::kTcp) saved.tcp = connection.tcp;
  if (connection.original.protocol == ip_protocol::kUdp) {
    const std::uint64_t now_ns = connection.expires_ns - remaining_ns;
    saved.udp_stream_in_ns = connection.udp_stream_from_ns - std::min(connection.udp_stream_from_ns, now_ns);
  }
  return saved;
}

}  // namespace penstock::conntrack
