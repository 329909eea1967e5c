// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A flow: the state of one connection, covering both directions. Owned by the flow table.

#pragma once

#include <array>
#include <cstdint>

#include "stack/decoded_packet.h"

namespace penstock::stack {

enum class Direction : std::uint8_t { to_server, to_client };
[[nodiscard]] constexpr Direction opposite(Direction direction) noexcept {
  return direction == Direction::to_server ? Direction::to_client : Direction::to_server;
}

/// Identifies a flow. `client` is the endpoint that sent the first packet, as far as known.
struct FlowKey {
  Endpoint client;  // ICMP: ports are type << 8 | code, and the type's counterpart; ESP: the SPI's halves
  Endpoint server;
  VlanIds vlan_ids{};
  std::uint8_t ip_version = 0;
  std::uint8_t protocol = 0;
  std::uint8_t tunnel_depth = 0;
};

enum class FlowState : std::uint8_t { new_flow, established, closed };

class TcpSession;

struct Flow {
  FlowKey key;
  std::uint64_t id = 0;  // unique while the process runs; positive as int64
  std::uint64_t start_ns = 0;
  std::uint64_t last_ns = 0;
  struct Counts {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;  // frame bytes
  };
  std::array<Counts, 2> counts{};  // by Direction
  FlowState state = FlowState::new_flow;
  std::array<bool, 2> seen{};  // by Direction: a packet other than an ICMP error was seen
  bool end_confirmed = false;  // closed TCP: both hosts confirmed it; otherwise one of them may continue
  bool blocked = false;        // set by a function that drops the whole flow: no new connection replaces it
  TcpSession* tcp = nullptr;   // null until a TCP packet creates it; owned by the tracker

  /// 64 bits for each function that attaches to flows (Gaviss §4.4), 0 when the flow begins. Owned by the flow table.
  std::uint64_t* slots = nullptr;

  [[nodiscard]] Counts& count(Direction direction) noexcept { return counts[static_cast<std::size_t>(direction)]; }
  [[nodiscard]] const Counts& count(Direction direction) const noexcept {
    return counts[static_cast<std::size_t>(direction)];
  }
};

}  // namespace penstock::stack
