// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/filter.h"

#include <algorithm>

#include "base/decimal.h"
#include "packet/ip.h"
#include "packet/transport.h"

namespace penstock::conntrack {

namespace {

struct ProtocolName {
  std::uint8_t number;
  std::string_view name;
};
/// Those that Linux tracks by more than addresses, and others that gateways often see.
constexpr auto kProtocols = std::to_array<ProtocolName>({{ip_protocol::kIcmp, "icmp"},
                                                         {ip_protocol::kIgmp, "igmp"},
                                                         {ip_protocol::kTcp, "tcp"},
                                                         {ip_protocol::kUdp, "udp"},
                                                         {ip_protocol::kGre, "gre"},
                                                         {ip_protocol::kEsp, "esp"},
                                                         {ip_protocol::kAh, "ah"},
                                                         {ip_protocol::kIcmpv6, "icmpv6"},
                                                         {89, "ospf"},
                                                         {112, "vrrp"},
                                                         {ip_protocol::kSctp, "sctp"},
                                                         {ip_protocol::kUdpLite, "udplite"}});

}  // namespace

std::string_view protocol_name(std::uint8_t protocol) noexcept {
  const auto* const found = std::ranges::find(kProtocols, protocol, &ProtocolName::number);
  return found == kProtocols.end() ? "unknown" : found->name;
}

std::optional<std::uint8_t> protocol_named(std::string_view text) noexcept {
  const auto* const found = std::ranges::find(kProtocols, text, &ProtocolName::name);
  return found != kProtocols.end() ? std::optional(found->number) : parse_decimal<std::uint8_t>(text);
}

std::optional<Prefix> read_prefix(std::string_view text) {
  constexpr std::uint8_t kBitsBefore = 96;
  if (const auto ipv4 = parse_ipv4_prefix(text))
    return Prefix{{0, ipv4->address.bits}, static_cast<std::uint8_t>(ipv4->length + kBitsBefore), 4};
  if (const auto ipv6 = parse_ipv6_prefix(text)) return Prefix{ipv6->address, ipv6->length, 6};
  return std::nullopt;
}

bool Filter::matches(const Tuple& tuple, std::uint16_t status, TcpState state) const noexcept {
  const auto within = [&tuple](const std::optional<Prefix>& prefix, const Ipv6Address& address) noexcept {
    return !prefix || (prefix->ip_version == tuple.ip_version && prefix->contains(address));
  };
  const bool any_port = !source_port && !destination_port;
  return (ip_version == 0 || ip_version == tuple.ip_version) && (!protocol || *protocol == tuple.protocol) &&
         (!tcp_state || *tcp_state == state) && (status & status_set) == status_set && (status & status_clear) == 0 &&
         within(source, tuple.source) && within(destination, tuple.destination) &&
         (any_port || begins_with_ports(tuple.protocol)) && (!source_port || *source_port == tuple.source_port) &&
         (!destination_port || *destination_port == tuple.destination_port);
}

}  // namespace penstock::conntrack
