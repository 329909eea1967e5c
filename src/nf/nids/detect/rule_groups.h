// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules in groups by protocol, direction and port, so that a packet meets few of them. A packet's group has all rules
// that may hold on it, and may have others: the number of groups is bounded, and ports that few share are joined.

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "nf/nids/detect/compiled_rule.h"

namespace penstock::nids {

struct GroupLimits {
  std::size_t groups = 24;   // of a protocol and direction, by port
  std::size_t rules = 6000;  // of all groups together
  // Rules of overlapping ranges make as many slices of ports as there are ports, each with most of the rules. So many
  // are looked at, and so many kept, of all slices together; the slices after that share one group.
  std::size_t sliced = 128'000'000;
  std::size_t kept = 16'000'000;
};

class RuleGroups {
 public:
  /// `rules` in order of evaluation. Those of addresses alone (`RuleType::ip_only`) are in no group.
  explicit RuleGroups(std::span<const CompiledRule> rules, const GroupLimits& limits = {});

  /// Places in `rules`, ascending; group 0 is empty.
  [[nodiscard]] std::span<const std::vector<std::uint32_t>> groups() const noexcept { return groups_; }

  /// Whether it is of TCP, whose payloads may go to streams. No group is of TCP and of something else.
  [[nodiscard]] bool of_tcp(std::size_t group) const noexcept { return of_tcp_[group]; }

  /// A packet's. `direction`: to_server where it has no flow.
  [[nodiscard]] std::uint16_t group_of(ProtocolClass protocol, stack::Direction direction,
                                       const stack::DecodedPacket& packet) const noexcept {
    const auto way = static_cast<std::size_t>(direction);
    if (protocol > ProtocolClass::udp) return whole_[static_cast<std::size_t>(protocol)][way];
    const std::uint16_t port = direction == stack::Direction::to_server ? packet.destination.port : packet.source.port;
    return by_port_[static_cast<std::size_t>(protocol)][way][port];
  }

 private:
  using Ports = std::vector<std::uint16_t>;  // 65,536

  std::uint16_t group(std::vector<std::uint32_t> rules, bool of_tcp);
  Ports group_by_port(std::span<const CompiledRule> rules, ProtocolClass protocol, stack::Direction direction,
                      const GroupLimits& limits);

  std::vector<std::vector<std::uint32_t>> groups_{1};
  std::vector<bool> of_tcp_{false};
  std::array<std::array<Ports, 2>, 2> by_port_;                         // TCP and UDP, by direction
  std::array<std::array<std::uint16_t, 2>, kProtocolClasses> whole_{};  // the others
};

}  // namespace penstock::nids
