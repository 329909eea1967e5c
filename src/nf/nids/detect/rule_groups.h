// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Groups rules by protocol, direction and port, so that each packet is tested against few rules. A packet's group
// contains all rules that may match it, and possibly others: the number of groups is bounded, and ports with few rules
// in common are merged.

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "nf/nids/detect/compiled_rule.h"

namespace penstock::nids {

struct GroupLimits {
  std::size_t groups = 24;   // by port, for each protocol and direction
  std::size_t rules = 6000;  // in all groups together
  // Rules with overlapping port ranges can make as many slices as there are ports, each with most of the rules. These
  // bound the rules processed and stored in all slices together; the remaining slices share one group.
  std::size_t sliced = 128'000'000;
  std::size_t kept = 16'000'000;
};

class RuleGroups {
 public:
  /// `rules` must be in the order of evaluation. Rules that test only addresses (`RuleType::ip_only`) are in no group.
  explicit RuleGroups(std::span<const CompiledRule> rules, const GroupLimits& limits = {});

  /// Positions in `rules`, ascending; group 0 is empty.
  [[nodiscard]] std::span<const std::vector<std::uint32_t>> groups() const noexcept { return groups_; }

  /// Whether the group is for TCP, whose payloads may belong to streams. A group never mixes TCP with other protocols.
  [[nodiscard]] bool of_tcp(std::size_t group) const noexcept { return of_tcp_[group]; }

  /// The packet's group. `direction`: to_server if the packet has no flow.
  [[nodiscard]] std::uint16_t group_of(ProtocolClass protocol, stack::Direction direction,
                                       const stack::DecodedPacket& packet) const noexcept {
    const auto way = static_cast<std::size_t>(direction);
    if (protocol > ProtocolClass::udp) return whole_[static_cast<std::size_t>(protocol)][way];
    const std::uint16_t port = direction == stack::Direction::to_server ? packet.destination.port : packet.source.port;
    return by_port_[static_cast<std::size_t>(protocol)][way][port];
  }

 private:
  using Ports = std::vector<std::uint16_t>;  // 65,536 entries

  std::uint16_t group(std::vector<std::uint32_t> rules, bool of_tcp);
  Ports group_by_port(std::span<const CompiledRule> rules, ProtocolClass protocol, stack::Direction direction,
                      const GroupLimits& limits);

  std::vector<std::vector<std::uint32_t>> groups_{1};
  std::vector<bool> of_tcp_{false};
  std::array<std::array<Ports, 2>, 2> by_port_;                         // TCP and UDP, by direction
  std::array<std::array<std::uint16_t, 2>, kProtocolClasses> whole_{};  // the other protocols
};

}  // namespace penstock::nids
