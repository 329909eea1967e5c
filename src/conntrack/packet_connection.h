// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What tracking says about a packet, for whoever decides about it elsewhere: on a device, or in another process.

#pragma once

#include <array>
#include <cstdint>

#include "conntrack/tracked.h"

namespace penstock::conntrack {

struct alignas(8) PacketConnection {
  static constexpr std::uint8_t kState = 7, kReply = 8, kSourceNat = 16, kDestinationNat = 32;

  std::uint8_t number = 0;  // State, and flags: the direction of the packet, translations of its connection
  std::uint8_t full = 0;    // 1: it begins a connection, and there is no room for more
  std::array<std::uint8_t, 6> reserved{};

  [[nodiscard]] static constexpr PacketConnection of(const Tracked& tracked) noexcept {
    PacketConnection said;
    said.number = static_cast<std::uint8_t>(tracked.state);
    if (tracked.direction == Direction::reply) said.number |= kReply;
    if (tracked.connection != nullptr) {
      if ((tracked.connection->status & Connection::kSourceNat) != 0) said.number |= kSourceNat;
      if ((tracked.connection->status & Connection::kDestinationNat) != 0) said.number |= kDestinationNat;
    }
    said.full = tracked.state == State::invalid && tracked.reason == Reason::full ? 1 : 0;
    return said;
  }
  /// Of one that another process has sent.
  [[nodiscard]] constexpr bool is_possible() const noexcept {
    constexpr unsigned kAll = kState | kReply | kSourceNat | kDestinationNat;
    return number <= kAll && (number & kState) <= static_cast<unsigned>(State::untracked) && full <= 1;
  }
};

}  // namespace penstock::conntrack
