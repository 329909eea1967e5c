// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Forwards one packet, for host and device, in the packet's order: check it (RFC 1812 §5.2.2, §5.3.7; RFC 8200), find
// its route, and send it on: hop limit, checksum, MACs, port. Nothing is written before everything is decided, so a
// dropped packet is unchanged. Packets to the host leave by its port, if it has one, and those that it sends arrive
// there; their hop limit stays.

#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/host_device.h"
#include "base/ip_address.h"
#include "nf/router/multibit_core.h"
#include "nf/router/neighbour_table.h"
#include "nf/router/next_hop.h"
#include "nf/router/route_entry.h"
#include "packet/checksum.h"
#include "packet/packet.h"

namespace penstock::router {

enum class DropReason : std::uint16_t {
  not_ip,
  truncated,     // the capture ends inside the IP header
  malformed,     // the IP header contradicts itself or the frame
  bad_checksum,  // the IPv4 header checksum
  martian,       // an address that routers do not forward
  multicast,     // to a multicast or broadcast address, of IP or of the link
  no_route,
  blackhole,
  unreachable,
  prohibit,
  local,  // addressed to the router itself
  ttl_exceeded,
  no_neighbour,           // the next hop's MAC address is unknown
  elsewhere,              // the kernel would send it through no port of the chain
  neighbour_unreachable,  // it was held, but the next hop's MAC address did not become known
};
inline constexpr std::array<std::string_view, 15> kDropReasons{
    "not_ip",    "truncated",    "malformed",    "bad_checksum", "martian",
    "multicast", "no_route",     "blackhole",    "unreachable",  "prohibit",
    "local",     "ttl_exceeded", "no_neighbour", "elsewhere",    "neighbour_unreachable"};

struct CheckRules {
  bool verify_checksum = true;
  bool drop_martians = true;
  bool answers = false;      // senders are told why packets are dropped, by the host
  PortIndex host = kNoPort;  // at whose other end the host is; kNoPort: packets for the host are dropped
  friend constexpr bool operator==(const CheckRules&, const CheckRules&) = default;
};

/// Whether senders are told about packets with this verdict: those that cannot be delivered, by the route or since the
/// TTL is used up, as in Linux.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool is_told(Verdict verdict) noexcept {
  if (verdict.kind != VerdictKind::drop) return false;
  const auto reason = static_cast<DropReason>(verdict.value);
  return reason == DropReason::no_route || reason == DropReason::unreachable || reason == DropReason::prohibit ||
         reason == DropReason::ttl_exceeded;
}

/// Borrows the tables that a lookup's value refers to.
struct ForwardView {
  const Hop* hops = nullptr;
  const EgressPort* ports = nullptr;
  NeighbourView neighbours;
};

/// Whether the header's checksum is correct. The sum is the same in any byte order (RFC 1071 §2 B).
[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool ipv4_checksum_is_right(const Ipv4Header& ip) noexcept {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&ip);
  const unsigned length = ip.header_length();
  std::uint64_t sum = 0;
  for (unsigned i = 0; i < length; i += 4) {
    std::uint32_t word = 0;
    memcpy(&word, bytes + i, sizeof(word));
    sum += word;
  }
  sum = (sum & 0xffff'ffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff;
}

/// Networks whose packets must not be forwarded: "this" network and loopback; as a source also addresses that do not
/// belong to a single host.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool is_martian(Ipv4Address source, Ipv4Address destination) noexcept {
  constexpr std::uint32_t kThis = 0;
  constexpr std::uint32_t kLoopback = 127;
  constexpr std::uint32_t kMulticast = 0xe;  // the highest four bits
  const std::uint32_t from = source.bits >> 24;
  const std::uint32_t to = destination.bits >> 24;
  return from == kThis || from == kLoopback || source.bits >> 28 == kMulticast || source.bits == 0xffff'ffff ||
         to == kThis || to == kLoopback;
}

/// RFC 4291 §2.5.2, §2.5.3, §2.5.6 and §2.7: the unspecified address, loopback, link-local; multicast as the source.
/// Also IPv4-mapped source addresses, ::ffff:0:0/96: no host has one (RFC 6890 table 20), and IPv4 filters do not see
/// them. Linux drops these since 5.4 (ip6_rcv_core). Like Linux, we forward packets to such an address if there is a
/// route.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool is_martian(const Ipv6Address& source,
                                                             const Ipv6Address& destination) noexcept {
  constexpr std::uint64_t kMulticast = 0xff;   // the highest eight bits
  constexpr std::uint64_t kLinkLocal = 0x3fa;  // the highest ten bits
  const auto this_or_loopback = [](const Ipv6Address& address) { return address.high == 0 && address.low <= 1; };
  const bool from_mapped = source.high == 0 && source.low >> 32 == 0xffff;
  return source.high >> 56 == kMulticast || source.high >> 54 == kLinkLocal || destination.high >> 54 == kLinkLocal ||
         from_mapped || this_or_loopback(source) || this_or_loopback(destination);
}

[[nodiscard]] PENSTOCK_HOST_DEVICE inline Verdict check_ipv4(const Ipv4Header& ip, CheckRules rules) noexcept {
  if (rules.verify_checksum && !ipv4_checksum_is_right(ip)) return Verdict::drop(DropReason::bad_checksum);
  const Ipv4Address destination{ip.destination.value()};
  if (destination.bits >> 28 == 0xe || destination.bits == 0xffff'ffff) return Verdict::drop(DropReason::multicast);
  if (rules.drop_martians && is_martian(Ipv4Address{ip.source.value()}, destination)) {
    return Verdict::drop(DropReason::martian);
  }
  return Verdict::forward();
}

[[nodiscard]] PENSTOCK_HOST_DEVICE inline Verdict check_ipv6(const Ipv6Header& ip, CheckRules rules) noexcept {
  const Ipv6Address destination = ip.destination_address();
  if (destination.high >> 56 == 0xff) return Verdict::drop(DropReason::multicast);
  if (rules.drop_martians && is_martian(ip.source_address(), destination)) return Verdict::drop(DropReason::martian);
  return Verdict::forward();
}

/// Whether the frame was a link-layer broadcast or multicast, as far as the link header tells: Ethernet by the
/// destination, Linux cooked headers by the packet type (<linux/if_packet.h>). The link header must be complete.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool is_link_multicast(PacketView packet) noexcept {
  constexpr unsigned kBroadcast = 1;
  constexpr unsigned kMulticast = 2;
  unsigned type = 0;
  switch (packet.packet->link_type) {
    case LinkType::ethernet: return (packet.frame[0] & 1) != 0;
    case LinkType::linux_sll: type = packet.at<LinuxSllHeader>(0).packet_type.value(); break;
    case LinkType::linux_sll2: type = packet.at<LinuxSll2Header>(0).packet_type; break;
    case LinkType::raw_ip:
    case LinkType::null_host:
    case LinkType::loop:
    case LinkType::ppp:
    case LinkType::cisco_hdlc: break;
  }
  return type == kBroadcast || type == kMulticast;
}

/// `forward` if the packet's destination is to be looked up; otherwise the reason for dropping it.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Verdict check(PacketView packet, CheckRules rules) noexcept {
  const PacketLayout& layout = packet.layout();
  if (!layout.is_ip()) return Verdict::drop(DropReason::not_ip);
  if (!layout.has(PacketLayout::kNetworkHeader)) {  // parsing has checked version and lengths
    const bool cut = layout.has(PacketLayout::kTruncated) && !layout.has(PacketLayout::kMalformed);
    return Verdict::drop(cut ? DropReason::truncated : DropReason::malformed);
  }
  // RFC 1812 §5.3.4: link-layer multicasts and broadcasts are not forwarded to a unicast address.
  if (is_link_multicast(packet)) return Verdict::drop(DropReason::multicast);
  return layout.network == NetworkLayer::ipv4 ? check_ipv4(packet.ipv4(), rules) : check_ipv6(packet.ipv6(), rules);
}

/// Decrements the TTL and updates the checksum (RFC 1624).
PENSTOCK_HOST_DEVICE inline void decrement_ttl(Ipv4Header& ip) noexcept {
  const auto before = static_cast<std::uint16_t>(ip.ttl << 8 | ip.protocol);
  --ip.ttl;
  ip.checksum.set(checksum_update(ip.checksum.value(), before, static_cast<std::uint16_t>(before - 0x100)));
}

[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr Verdict drop_by_kind(RouteKind kind) noexcept {
  switch (kind) {
    case RouteKind::blackhole: return Verdict::drop(DropReason::blackhole);
    case RouteKind::unreachable: return Verdict::drop(DropReason::unreachable);
    case RouteKind::prohibit: return Verdict::drop(DropReason::prohibit);
    case RouteKind::local:
    case RouteKind::anycast: return Verdict::drop(DropReason::local);
    case RouteKind::broadcast:
    case RouteKind::multicast: return Verdict::drop(DropReason::multicast);
    case RouteKind::elsewhere: return Verdict::drop(DropReason::elsewhere);
    case RouteKind::unicast:
    case RouteKind::throw_: break;
  }
  return Verdict::drop(DropReason::no_route);
}

/// The destination MAC for the next hop; null if it is unknown.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline const MacAddress* destination_mac(PacketView packet, const Hop& hop,
                                                                            const ForwardView& tables) noexcept {
  switch (hop.mac_source) {
    case MacSource::keep: return &packet.ethernet().destination;
    case MacSource::hop: return &hop.mac;
    case MacSource::unresolved: return nullptr;
    case MacSource::destination: break;
  }
  const Ipv6Address address = packet.layout().network == NetworkLayer::ipv6
                                  ? packet.ipv6().destination_address()
                                  : mapped(Ipv4Address{packet.ipv4().destination.value()});
  return tables.neighbours.find(address, hop.port);
}

/// Sends a packet for one of the host's addresses to the host. There, the port's MAC is that of the host's end.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Verdict send_to_host(PacketView packet, PortIndex host,
                                                               const ForwardView& tables) noexcept {
  const EgressPort& port = tables.ports[host];
  if (packet.packet->link_type == LinkType::ethernet && port.rewrite_source) {
    if (port.mac == MacAddress{}) return Verdict::drop(DropReason::no_neighbour);  // the kernel has not told it
    packet.ethernet().destination = port.mac;
  }
  return Verdict::forward(host);
}

/// Forwards a checked packet as `value`, the result of its lookup, says. `host`: as CheckRules.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Verdict send(PacketView packet, std::uint32_t value,
                                                       const ForwardView& tables, PortIndex host) noexcept {
  if (value == kNoRoute) return Verdict::drop(DropReason::no_route);
  const Hop& hop = select_hop(tables.hops + value, packet.packet->flow_hash);
  const bool from_host = host != kNoPort && packet.packet->in_port == host;
  if (hop.kind == RouteKind::local && host != kNoPort && !from_host) return send_to_host(packet, host, tables);
  if (hop.kind != RouteKind::unicast) return drop_by_kind(hop.kind);
  const bool ipv4 = packet.layout().network == NetworkLayer::ipv4;
  if (!from_host && (ipv4 ? packet.ipv4().ttl : packet.ipv6().hop_limit) <= 1)
    return Verdict::drop(DropReason::ttl_exceeded);

  if (packet.packet->link_type == LinkType::ethernet) {
    const MacAddress* const mac = destination_mac(packet, hop, tables);
    if (mac == nullptr) return Verdict::drop(DropReason::no_neighbour);
    EthernetHeader& ethernet = packet.ethernet();
    if (hop.mac_source != MacSource::keep) ethernet.destination = *mac;
    const EgressPort& port = tables.ports[hop.port];
    if (port.rewrite_source) ethernet.source = port.mac;
  }
  if (from_host) return Verdict::forward(hop.port);
  if (ipv4) {
    decrement_ttl(packet.ipv4());
  } else {
    --packet.ipv6().hop_limit;
  }
  return Verdict::forward(hop.port);
}

/// The complete processing of one packet. Borrows the tables, on the host or the device. Packets about which senders
/// are told are left to the host.
template <typename Fib4View, typename Fib6View>
struct ForwardCore {
  Fib4View v4;
  Fib6View v6;
  ForwardView tables;
  CheckRules rules;

  [[nodiscard]] PENSTOCK_HOST_DEVICE Verdict operator()(PacketView packet) const noexcept {
    const Verdict checked = check(packet, rules);
    if (!checked.alive()) return checked;
    const Verdict verdict = forward(packet);
    return rules.answers && is_told(verdict) ? Verdict::punt() : verdict;
  }

 private:
  [[nodiscard]] PENSTOCK_HOST_DEVICE Verdict forward(PacketView packet) const noexcept {
    const std::uint32_t value = packet.layout().network == NetworkLayer::ipv4
                                    ? lookup(v4, Ipv4Address{packet.ipv4().destination.value()})
                                    : lookup(v6, packet.ipv6().destination_address());
    return send(packet, value, tables, rules.host);
  }
};

}  // namespace penstock::router
