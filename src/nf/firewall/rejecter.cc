// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/rejecter.h"

#include <optional>

#include "classify/rules_view.h"
#include "conntrack/transport.h"
#include "packet/checksum.h"

namespace penstock::firewall {

namespace {

/// A checksum that cannot be checked counts as right, as in Linux.
bool has_wrong_checksum(PacketView packet) noexcept {
  if (packet.layout().network == NetworkLayer::ipv4 &&
      checksum(packet.frame + packet.layout().network_offset, packet.ipv4().header_length()) != 0) {
    return true;
  }
  conntrack::Transport transport;
  if (!packet.layout().has(PacketLayout::kTransportHeader) || !conntrack::read_transport(packet, transport))
    return false;
  return conntrack::find_error(packet, transport, true) == conntrack::Reason::checksum;
}

}  // namespace

bool Rejecter::rejects(std::uint32_t counter) const noexcept {
  const auto rules = static_cast<std::uint32_t>(rules_.rules.size());
  if (counter < rules) return rules_.rules[counter].target == classify::Target::reject;
  return counter != classify::kNoCounter && rules_.policy(counter == classify::policy_counter(rules, NetworkLayer::ipv4)
                                                              ? NetworkLayer::ipv4
                                                              : NetworkLayer::ipv6) == classify::Target::reject;
}

void Rejecter::answer(PacketView packet, std::uint32_t counter) noexcept {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  constexpr std::uint8_t kUnreachable4 = 3, kUnreachable6 = 1;
  const PortIndex port = packet.packet->in_port;
  if (emitter_ == nullptr || port >= ports_.size() || !ports_[port]) return;
  if (!function::may_be_answered(packet) || has_wrong_checksum(packet)) return;
  const classify::Answer answer = counter < rules_.rules.size() ? rules_.rules[counter].answer : classify::Answer{};
  if (answer.tcp_reset) return function::answer_with_reset(packet, *emitter_);
  if (!limit_.take(static_cast<std::int64_t>(packet.packet->timestamp_ns / kSecond))) return;
  const bool ipv4 = packet.layout().network == NetworkLayer::ipv4;
  const function::IcmpError error = ipv4 ? function::IcmpError{kUnreachable4, answer.ipv4_code}
                                         : function::IcmpError{kUnreachable6, answer.ipv6_code};
  function::answer_with_error(packet, error, std::nullopt, *emitter_);
}

}  // namespace penstock::firewall
