// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What tracking says about a packet.

#pragma once

#include <cstdint>

#include "conntrack/connection.h"
#include "conntrack/outcome.h"

namespace penstock::conntrack {

/// As `ct state` of nftables.
enum class State : std::uint8_t { invalid, new_connection, established, related, untracked };

struct Tracked {
  Connection* connection = nullptr;  // null for invalid and untracked packets; valid until the next packet is tracked
  State state = State::untracked;
  Direction direction = Direction::original;
  Reason reason = Reason::malformed;  // of an invalid packet. The kernel drops those with Reason::full
  bool lost = false;                  // its connection has ended since, and may have been translated (connections.h)
  // With State::related: the packet is one of a connection that was expected, and not an ICMP error.
  bool expected = false;

  [[nodiscard]] bool is_error() const noexcept { return state == State::related && !expected; }
  /// Until it was answered, a connection begins with each of its packets.
  [[nodiscard]] bool may_be_first() const noexcept { return state == State::new_connection || expected; }
};

}  // namespace penstock::conntrack
