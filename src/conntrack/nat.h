// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the translation of a connection writes to one of its packets: the step between Table::track and rewrite.

#pragma once

#include <cstdint>

#include "conntrack/nat_core.h"
#include "conntrack/nat_range.h"
#include "conntrack/tracked.h"

namespace penstock::conntrack {

/// The bit of Connection::status that is set once this end's translation is decided.
[[nodiscard]] constexpr std::uint16_t done_bit(NatKind kind) noexcept {
  return kind == NatKind::source ? Connection::kSourceNatDone : Connection::kDestinationNatDone;
}

/// The side of a packet that a hook of this kind writes.
[[nodiscard]] constexpr std::uint8_t side_of(NatKind kind) noexcept {
  return kind == NatKind::source ? Rewrite::kSource : Rewrite::kDestination;
}

/// What to write to a packet that was tracked before it was changed. `sides` are those that this step writes
/// (Rewrite::kSource, kDestination): as in Linux, the destination before filters and routing, and the source after
/// them. Replies are translated back. `needed()` is false if there is nothing to write.
[[nodiscard]] inline Rewrite rewrite_for(const Tracked& tracked, std::uint8_t sides) noexcept {
  Rewrite rewrite;
  if (tracked.connection == nullptr || !tracked.connection->translated()) return rewrite;
  const Connection& connection = *tracked.connection;
  // The source of replies is what the original's destination was translated to.
  const bool reply = tracked.direction == Direction::reply;
  const std::uint16_t source = reply ? Connection::kDestinationNat : Connection::kSourceNat;
  const std::uint16_t destination = reply ? Connection::kSourceNat : Connection::kDestinationNat;
  if ((sides & Rewrite::kSource) != 0 && (connection.status & source) != 0) rewrite.sides |= Rewrite::kSource;
  if ((sides & Rewrite::kDestination) != 0 && (connection.status & destination) != 0) {
    rewrite.sides |= Rewrite::kDestination;
  }
  if (!rewrite.needed()) return rewrite;
  // Packets leave as what the other direction's packets answer.
  const Tuple& other = connection.tuple(opposite(tracked.direction));
  rewrite.source = other.destination;
  rewrite.destination = other.source;
  rewrite.source_port = is_icmp(other) ? other.source_port : other.destination_port;
  rewrite.destination_port = other.source_port;
  rewrite.is_error = tracked.is_error();
  return rewrite;
}

}  // namespace penstock::conntrack
