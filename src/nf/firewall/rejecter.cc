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
  constexpr std::uint8_t kUnreachable4 = 3, kUnreachable6 = 1;
  const PortIndex port = packet.packet->in_port;
  if (emitter_ == nullptr || port >= answering_.ports.size() || !answering_.ports[port]) return;
  const auto arrived = answering_.as_they_arrived ? emitter_->as_it_arrived(packet) : packet;
  if (!arrived || !function::may_be_answered(*arrived) || has_wrong_checksum(*arrived)) return;
  const classify::Answer answer = counter < rules_.rules.size() ? rules_.rules[counter].answer : classify::Answer{};
  if (answer.tcp_reset) return function::answer_with_reset(*arrived, packet, *emitter_);
  if (!limit_->take(*arrived)) return;
  const bool ipv4 = packet.layout().network == NetworkLayer::ipv4;
  const function::IcmpError error = ipv4 ? function::IcmpError{kUnreachable4, answer.ipv4_code}
                                         : function::IcmpError{kUnreachable6, answer.ipv6_code};
  function::answer_with_error(*arrived, error, source_of(*arrived, packet), packet, *emitter_);
}

/// Linux sends errors from the address of the interface by which it reaches the sender, here of the port where the
/// packet came. If the packet's destination was translated, NAT makes it the destination that the sender knows.
std::optional<Ipv6Address> Rejecter::source_of(PacketView arrived, PacketView now) const noexcept {
  const PortIndex port = arrived.packet->in_port;
  if (port >= answering_.addresses.size()) return std::nullopt;
  const bool ipv4 = arrived.layout().network == NetworkLayer::ipv4;
  const bool is_translated = ipv4 ? arrived.ipv4().destination.value() != now.ipv4().destination.value()
                                  : arrived.ipv6().destination_address() != now.ipv6().destination_address();
  return is_translated ? std::nullopt : answering_.addresses[port].of(arrived.layout().network);
}

}  // namespace penstock::firewall
