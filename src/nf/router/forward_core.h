// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a router does with one packet, for host and device, in the packet's order: check it (RFC 1812 §5.2.2, §5.3.7;
// RFC 8200), find its route, and send it on: hop limit, checksum, MACs, port. Nothing is written before all is decided,
// so a dropped packet is as it came.

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
  truncated,     // the capture cut the IP header
  malformed,     // the IP header contradicts itself or the frame
  bad_checksum,  // of the IPv4 header
  martian,       // an address that no router forwards
  multicast,     // to a group or to all, of IP or of the link
  no_route,
  blackhole,
  unreachable,
  prohibit,
  local,  // to the router itself
  ttl_exceeded,
  no_neighbour,  // the next hop's MAC is not known
};
inline constexpr std::array<std::string_view, 13> kDropReasons{
    "not_ip",    "truncated",   "malformed", "bad_checksum", "martian",      "multicast",   "no_route",
    "blackhole", "unreachable", "prohibit",  "local",        "ttl_exceeded", "no_neighbour"};

struct CheckRules {
  bool verify_checksum = true;
  bool drop_martians = true;
};

/// Borrows the tables that a route's value leads to.
struct ForwardView {
  const Hop* hops = nullptr;
  const EgressPort* ports = nullptr;
  NeighbourView neighbours;
};

/// Whether the header's checksum is right. The sum is the same in any byte order (RFC 1071 §2 B).
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

/// Networks whose packets stay where they are: "this" network and loopback, and as a source what is no single host.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool is_martian(Ipv4Address source, Ipv4Address destination) noexcept {
  constexpr std::uint32_t kThis = 0;
  constexpr std::uint32_t kLoopback = 127;
  constexpr std::uint32_t kMulticast = 0xe;  // the highest four bits
  const std::uint32_t from = source.bits >> 24;
  const std::uint32_t to = destination.bits >> 24;
  return from == kThis || from == kLoopback || source.bits >> 28 == kMulticast || source.bits == 0xffff'ffff ||
         to == kThis || to == kLoopback;
}

/// RFC 4291 §2.5.2, §2.5.3, §2.5.6 and §2.7: the unspecified address, loopback, link-local; a group as the source. And
/// from an IPv4-mapped address, ::ffff:0:0/96, which no host has (RFC 6890 table 20) and filters for IPv4 do not know:
/// Linux drops it since 5.4 (ip6_rcv_core). To one it forwards, where a route leads there, and so do we.
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

/// Whether the frame went to all or to a group on its link, as far as its link header tells: Ethernet by the
/// destination, a cooked one by the packet type (<linux/if_packet.h>). For frames whose link header is whole.
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

/// `forward` for a packet that is to be looked up by its destination, else why it is dropped.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Verdict check(PacketView packet, CheckRules rules) noexcept {
  const PacketLayout& layout = packet.layout();
  if (!layout.is_ip()) return Verdict::drop(DropReason::not_ip);
  if (!layout.has(PacketLayout::kNetworkHeader)) {  // parsing checked version and lengths
    const bool cut = layout.has(PacketLayout::kTruncated) && !layout.has(PacketLayout::kMalformed);
    return Verdict::drop(cut ? DropReason::truncated : DropReason::malformed);
  }
  // RFC 1812 §5.3.4: what came to many on the link is not forwarded to one.
  if (is_link_multicast(packet)) return Verdict::drop(DropReason::multicast);
  return layout.network == NetworkLayer::ipv4 ? check_ipv4(packet.ipv4(), rules) : check_ipv6(packet.ipv6(), rules);
}

/// One less, with the checksum made to fit (RFC 1624).
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
    case RouteKind::unicast:
    case RouteKind::throw_: break;
  }
  return Verdict::drop(DropReason::no_route);
}

/// The MAC for the frame's next leg, or null where it is not known.
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

/// Sends a checked packet the way that `value`, the result of its look-up, says.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Verdict send(PacketView packet, std::uint32_t value,
                                                       const ForwardView& tables) noexcept {
  if (value == kNoRoute) return Verdict::drop(DropReason::no_route);
  const Hop& hop = select_hop(tables.hops + value, packet.packet->flow_hash);
  if (hop.kind != RouteKind::unicast) return drop_by_kind(hop.kind);
  const bool ipv4 = packet.layout().network == NetworkLayer::ipv4;
  if ((ipv4 ? packet.ipv4().ttl : packet.ipv6().hop_limit) <= 1) return Verdict::drop(DropReason::ttl_exceeded);

  if (packet.packet->link_type == LinkType::ethernet) {
    const MacAddress* const mac = destination_mac(packet, hop, tables);
    if (mac == nullptr) return Verdict::drop(DropReason::no_neighbour);
    EthernetHeader& ethernet = packet.ethernet();
    if (hop.mac_source != MacSource::keep) ethernet.destination = *mac;
    const EgressPort& port = tables.ports[hop.port];
    if (port.rewrite_source) ethernet.source = port.mac;
  }
  if (ipv4) {
    decrement_ttl(packet.ipv4());
  } else {
    --packet.ipv6().hop_limit;
  }
  return Verdict::forward(hop.port);
}

/// The whole, for one packet. Tables are borrowed, the host's or the device's.
template <typename Fib4View, typename Fib6View>
struct ForwardCore {
  Fib4View v4;
  Fib6View v6;
  ForwardView tables;
  CheckRules rules;

  [[nodiscard]] PENSTOCK_HOST_DEVICE Verdict operator()(PacketView packet) const noexcept {
    const Verdict checked = check(packet, rules);
    if (!checked.alive()) return checked;
    const std::uint32_t value = packet.layout().network == NetworkLayer::ipv4
                                    ? lookup(v4, Ipv4Address{packet.ipv4().destination.value()})
                                    : lookup(v6, packet.ipv6().destination_address());
    return send(packet, value, tables);
  }
};

}  // namespace penstock::router
