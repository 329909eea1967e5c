// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Handshakes beside the one that a session follows. Anybody can send a SYN, also in the middle of a connection, where
// hosts ignore it (RFC 9293 §3.10.7.4, RFC 5961 §4). So no SYN and no SYN/ACK changes an open session by itself: they
// are noted here, and the session begins anew when both sides have agreed:
//
//   client ── SYN, seq c ──▶             noted
//          ◀── SYN/ACK, seq s, ack c+1 ──  noted
//   client ── ACK, seq c+1, ack s+1 ──▶  both have: a new session

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
  std::byte* data = nullptr;  // of a fast open (RFC 7413): a piece of the stream memory
  std::uint16_t window = 0;
  std::uint8_t scale = 0;
  std::uint8_t data_order = 0;
  bool has_scale = false, has_timestamp = false, fast_open = false;
  Direction from = Direction::to_server;
};

/// What both sides agreed to. Of a SYN that was not seen, or that others displaced, the answer tells the number.
struct Handshake {
  HandshakeSegment syn, synack;
};

/// The last few of each kind. A piece of the session memory.
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
