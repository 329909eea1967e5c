// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A flow: the packets of a connection in both directions, and what is known of it. Owned by the flow table.

#pragma once

#include <array>
#include <cstdint>

#include "stack/decoded_packet.h"

namespace penstock::stack {

enum class Direction : std::uint8_t { to_server, to_client };
[[nodiscard]] constexpr Direction opposite(Direction direction) noexcept {
  return direction == Direction::to_server ? Direction::to_client : Direction::to_server;
}

/// What tells flows apart. `client` sent the first packet, as far as that can be told.
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
  std::uint64_t id = 0;  // unique in a run; positive as an int64
  std::uint64_t start_ns = 0;
  std::uint64_t last_ns = 0;
  struct Counts {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;  // of their frames
  };
  std::array<Counts, 2> counts{};  // by Direction
  FlowState state = FlowState::new_flow;
  std::array<bool, 2> seen{};  // by Direction: a packet came that is no ICMP error
  bool end_confirmed = false;  // of TCP that is closed: both hosts have said so, else one of them may go on
  bool blocked = false;        // set by a function that drops all of the flow: nothing begins anew on its endpoints
  TcpSession* tcp = nullptr;   // of TCP, once a packet has made one; the tracker's

  /// 64 bits for each function that attaches to flows (Gaviss §4.4), 0 when the flow begins. The flow table's.
  std::uint64_t* slots = nullptr;

  [[nodiscard]] Counts& count(Direction direction) noexcept { return counts[static_cast<std::size_t>(direction)]; }
  [[nodiscard]] const Counts& count(Direction direction) const noexcept {
    return counts[static_cast<std::size_t>(direction)];
  }
};

}  // namespace penstock::stack
