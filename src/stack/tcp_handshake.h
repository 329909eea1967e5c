// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Handshakes other than the session's own. Anyone can send a SYN in the middle of a connection, and hosts ignore it
// (RFC 9293 §3.10.7.4, RFC 5961 §4). So a SYN or SYN/ACK alone never changes an open session. It is recorded here, and
// a new session replaces the old one only once both sides have agreed:
//
//   client ── SYN, seq c ──▶             recorded
//          ◀── SYN/ACK, seq s, ack c+1 ──  recorded
//   client ── ACK, seq c+1, ack s+1 ──▶  both sides agree: new session

#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "stack/flow.h"
#include "stack/memory_pool.h"
#include "stack/tcp_options.h"

namespace penstock::stack {

/// A SYN or a SYN/ACK.
struct HandshakeSegment {
  std::uint32_t sequence = 0, ack = 0, timestamp = 0, echo = 0;
  std::uint32_t data_length = 0;
  std::byte* data = nullptr;  // TCP Fast Open data (RFC 7413), allocated from stream memory
  std::uint16_t window = 0;
  std::uint8_t scale = 0;
  std::uint8_t data_order = 0;
  bool has_scale = false, has_timestamp = false, fast_open = false;
  Direction from = Direction::to_server;
};

/// A handshake that both sides completed. If the SYN was not seen, or was displaced by later ones, its sequence number
/// is derived from the SYN/ACK.
struct Handshake {
  HandshakeSegment syn, synack;
};

/// The last kMost SYNs and SYN/ACKs. Allocated from session memory.
struct Handshakes {
  static constexpr std::size_t kMost = 5;  // Suricata's max-synack-queued
  static constexpr unsigned kOrder = 9;
  template <std::size_t most>
  struct Ring {
    std::array<HandshakeSegment, most> segments;
    std::uint32_t count = 0;
  };
  Ring<kMost> syns, synacks;
};
static_assert(sizeof(Handshakes) <= std::size_t{1} << Handshakes::kOrder);

}  // namespace penstock::stack
