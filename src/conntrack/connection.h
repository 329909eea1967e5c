// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// One tracked connection: three cache lines, which the table owns. A look-up and a packet of a known connection touch
// the first line, and TCP the second. The third is for beginning, ending and moving in lists.

#pragma once

#include <array>
#include <cstdint>

#include "conntrack/tuple.h"

namespace penstock::conntrack {

enum class Direction : std::uint8_t { original, reply };

[[nodiscard]] constexpr Direction opposite(Direction direction) noexcept {
  return direction == Direction::original ? Direction::reply : Direction::original;
}

enum class TcpState : std::uint8_t {
  none,
  syn_sent,
  syn_recv,
  established,
  fin_wait,
  close_wait,
  last_ack,
  time_wait,
  close,
  syn_sent2,  // SYNs of both sides: a simultaneous open
};

/// The hosts have ended the connection, and may use the tuple for another one already.
[[nodiscard]] constexpr bool is_closing(TcpState state) noexcept {
  return state >= TcpState::fin_wait && state <= TcpState::close;
}

/// What decides about a segment's effect, besides its numbers.
enum class TcpKind : std::uint8_t { syn, syn_ack, fin, ack, rst, none };

/// What was seen of one side, by sequence number.
struct TcpSide {
  std::uint32_t end = 0;         // after the last byte that it sent
  std::uint32_t max_end = 0;     // after the last byte that it may send
  std::uint32_t max_window = 0;  // the largest window that it offered; 0 before its first segment
  std::uint32_t max_ack = 0;     // the last byte that it acknowledged; valid with kAcknowledged
  std::uint8_t scale = 0;        // of its windows
  std::uint8_t flags = 0;

  // With the values of the kernel's IP_CT_TCP_FLAG_*.
  static constexpr std::uint8_t kWindowScale = 1, kSack = 2, kClosedFirst = 4, kLiberal = 8, kUnacknowledged = 16,
                                kAcknowledged = 32;
  [[nodiscard]] constexpr bool has(std::uint8_t flag) const noexcept { return (flags & flag) != 0; }
};

/// What TCP remembers besides the two sides: the last segment that was accepted, or let pass without believing it.
struct TcpTracking {
  std::array<TcpSide, 2> sides;  // by Direction
  std::uint32_t last_sequence = 0, last_ack = 0, last_end = 0;
  std::uint16_t last_window = 0;  // as sent, not scaled
  std::uint8_t last_scale = 0;
  std::uint8_t last_flags = 0;  // of TcpSide, for a SYN that was let pass; and these:
  TcpKind last_kind = TcpKind::none;
  Direction last_direction = Direction::original;
  std::uint8_t retransmissions = 0;

  static constexpr std::uint8_t kExpectsChallenge = 64, kSimultaneous = 128;
};

struct alignas(64) Connection {
  // Read by users.
  Tuple original;
  std::uint64_t expires_ns = 0;  // in the table's time: Table::remaining_ns
  std::uint32_t mark = 0;        // the user's own, as `ct mark`
  std::uint16_t status = 0;
  TcpState tcp_state = TcpState::none;
  // Before it is confirmed: the packets of which it is not known whether they pass; at most 255.
  std::uint8_t open_packets = 0;

  // With the values of the kernel's IPS_*.
  static constexpr std::uint16_t kSeenReply = 2, kAssured = 4, kConfirmed = 8, kSourceNat = 16, kDestinationNat = 32,
                                 kSourceNatDone = 128, kDestinationNatDone = 256, kDying = 512;
  [[nodiscard]] bool seen_reply() const noexcept { return (status & kSeenReply) != 0; }
  [[nodiscard]] bool assured() const noexcept { return (status & kAssured) != 0; }
  [[nodiscard]] bool confirmed() const noexcept { return (status & kConfirmed) != 0; }
  [[nodiscard]] bool source_translated() const noexcept { return (status & kSourceNat) != 0; }
  /// The reply's tuple is not the inverse of the original's.
  [[nodiscard]] bool translated() const noexcept { return (status & (kSourceNat | kDestinationNat)) != 0; }
  [[nodiscard]] const Tuple& tuple(Direction direction) const noexcept {
    return direction == Direction::original ? original : reply;
  }

  // Of the store.
  static constexpr std::uint32_t kNone = 0xffffffff;
  std::uint32_t next_in_bucket = kNone;
  std::uint32_t due_tick = 0;  // when the timer looks at it: not after it expires

  // Of the protocols.
  union {
    TcpTracking tcp;
    std::uint64_t udp_stream_from_ns;
  };

  Tuple reply;
  // Of the store: the timer's slot, and the order in which connections make room for new ones.
  struct Links {
    std::uint32_t next = kNone, previous = kNone;
  };
  alignas(8) Links timer;
  Links order;
  std::uint32_t generation = 0;      // how often this memory has held a connection
  std::uint32_t next_reply = kNone;  // in the bucket of the reply's tuple, if the connection is translated

  Connection() noexcept : tcp() {}
};
static_assert(sizeof(Connection) == 192);

}  // namespace penstock::conntrack
