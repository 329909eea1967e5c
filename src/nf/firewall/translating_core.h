// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The decision of a firewall that translates addresses, for packets whose translation the host knows: the filters at
// the hook, and then what the translation writes there. For host and device.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "base/ip_address.h"
#include "conntrack/nat_core.h"
#include "nf/firewall/judge_core.h"

namespace penstock::firewall {

/// What the host knows about the connection of a packet that rules apply to. At one hook, at most one end of a packet
/// is written: the destination before the route is looked up, the source after that.
struct alignas(8) TranslatingState {
  Ipv6Address address;           // what to write; IPv4: {0, address}
  std::uint16_t port = 0;        // of ICMP: the identifier
  std::uint8_t sides = 0;        // Rewrite::kSource or kDestination; 0: nothing is written
  std::uint8_t connection = 0;   // as Key::connection
  bool full = false;             // as PacketConnection::full
  bool is_left_to_host = false;  // its translation is not known yet, or reaches into a quoted packet

  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr conntrack::Rewrite rewrite() const noexcept {
    return {address, address, port, port, sides, false};
  }
};
static_assert(sizeof(TranslatingState) == 24);  // it crosses PCIe with each packet

template <typename Engine>
struct TranslatingCore {
  using Finding = std::uint32_t;
  using State = TranslatingState;

  TrackedJudgeCore<Engine> judge;

  [[nodiscard]] PENSTOCK_HOST_DEVICE Verdict operator()(PacketView packet, const State& state,
                                                        Finding& counter) const noexcept {
    if (state.is_left_to_host) {
      counter = classify::kNoCounter;
      return Verdict::punt();
    }
    const Verdict verdict = judge(packet, {state.connection, static_cast<std::uint8_t>(state.full), {}}, counter);
    if (!verdict.alive() || state.sides == 0 || standing_of(packet.layout()) != Standing::judged) return verdict;
    return conntrack::rewrite(packet, state.rewrite()) ? verdict : Verdict::drop(DropReason::untranslated);
  }
};

}  // namespace penstock::firewall
