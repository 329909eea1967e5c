// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Header changes around ESP, in both directions: moves link headers and updates their protocol, sets the length and
// protocol of IP headers, and maps the ECN field between inner and outer headers. Pure functions for host and device.
// Offsets count from the frame's first byte.

#pragma once

#include <cstdint>
#include <cstring>

#include "base/host_device.h"
#include "nf/ipsec/reasons.h"
#include "nf/ipsec/sa/sa_layout.h"
#include "packet/checksum.h"
#include "packet/packet.h"

namespace penstock::ipsec {

/// Copies bytes to lower addresses; the ranges may overlap.
PENSTOCK_HOST_DEVICE inline void move_down(std::uint8_t* to, const std::uint8_t* from, std::uint32_t count) noexcept {
#ifdef __CUDA_ARCH__
  for (std::uint32_t i = 0; i < count; ++i) to[i] = from[i];
#else
  std::memmove(to, from, count);
#endif
}

/// Copies bytes to higher addresses; the ranges may overlap.
PENSTOCK_HOST_DEVICE inline void move_up(std::uint8_t* to, const std::uint8_t* from, std::uint32_t count) noexcept {
#ifdef __CUDA_ARCH__
  for (std::uint32_t i = count; i > 0; --i) to[i - 1] = from[i - 1];
#else
  std::memmove(to, from, count);
#endif
}

/// Moves the start of the frame `bytes` towards lower addresses (higher if negative) and sets its length. The whole new
/// range must be in the frame's room. Leaves the layout of the old frame in place.
PENSTOCK_HOST_DEVICE inline void move_bounds(PacketView& view, std::int32_t bytes, std::uint32_t length) noexcept {
  view.frame -= bytes;
  view.packet->offset -= static_cast<std::uint32_t>(bytes);
  view.packet->length = length;
  view.packet->wire_length = length;
}

/// Whether the link header can announce either IP version. Not those with address family numbers, which differ between
/// systems, nor PPP, which has to negotiate each protocol.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool names_any_family(LinkType link) noexcept {
  return link != LinkType::null_host && link != LinkType::loop && link != LinkType::ppp;
}

/// Writes the EtherType, which follows the VLAN tags if there are any. The link header is `link_bytes` long.
PENSTOCK_HOST_DEVICE inline void set_link_family(std::uint8_t* frame, LinkType link, std::uint32_t link_bytes,
                                                 bool has_vlan_tags, NetworkLayer family) noexcept {
  if (link == LinkType::raw_ip) return;
  const std::uint32_t at = link == LinkType::linux_sll2 && !has_vlan_tags ? 0 : link_bytes - 2;
  reinterpret_cast<Be16*>(frame + at)->set(family == NetworkLayer::ipv4 ? ether_type::kIpv4 : ether_type::kIpv6);
}

// DSCP (RFC 2474) and ECN (RFC 3168) together make up IPv4's TOS and IPv6's traffic class.
inline constexpr std::uint8_t kEcnMask = 3, kNotEct = 0, kEct1 = 1, kEct0 = 2, kCe = 3;

[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint8_t traffic_class(const std::uint8_t* ip,
                                                                     NetworkLayer family) noexcept {
  if (family == NetworkLayer::ipv4) return reinterpret_cast<const Ipv4Header*>(ip)->tos;
  return static_cast<std::uint8_t>(reinterpret_cast<const Ipv6Header*>(ip)->version_class_label.value() >> 20);
}

PENSTOCK_HOST_DEVICE inline void set_traffic_class(std::uint8_t* ip, NetworkLayer family, std::uint8_t value) noexcept {
  if (family == NetworkLayer::ipv4) {
    auto& header = *reinterpret_cast<Ipv4Header*>(ip);
    const auto version = static_cast<std::uint16_t>(header.version_ihl << 8);
    header.checksum.set(checksum_update(header.checksum.value(), static_cast<std::uint16_t>(version | header.tos),
                                        static_cast<std::uint16_t>(version | value)));
    header.tos = value;
    return;
  }
  auto& header = *reinterpret_cast<Ipv6Header*>(ip);
  header.version_class_label.set((header.version_class_label.value() & 0xf00f'ffff) | static_cast<std::uint32_t>(value)
                                                                                          << 20);
}

/// The inner ECN field at a tunnel's exit (RFC 6040 figure 4). If `drop` is set, `ecn` is meaningless.
struct Decongested {
  bool drop;
  std::uint8_t ecn;
};
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr Decongested decapsulated_ecn(std::uint8_t inner,
                                                                          std::uint8_t outer) noexcept {
  if (outer == kCe) return {inner == kNotEct, kCe};
  if (outer == kEct1 && inner == kEct0) return {false, kEct1};
  return {false, inner};
}

/// Offset of the byte that names the protocol of an IP packet's payload.
struct ProtocolField {
  Reason reason = Reason::none;
  std::uint32_t at = 0;
};

/// For a packet with a complete layout; IPv6 extension headers are skipped. Refuses packets with an authentication
/// header: what it covers must not change, nor be trusted before it is verified.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline ProtocolField find_protocol_field(PacketView view) noexcept {
  const PacketLayout& layout = view.layout();
  if (layout.network == NetworkLayer::ipv4) return {Reason::none, layout.network_offset + 9U};
  std::uint32_t field = layout.network_offset + 6U;
  std::uint32_t next = layout.network_offset + kBytesOf<Ipv6Header>;
  while (next + kBytesOf<Ipv6Extension> <= layout.transport_offset) {
    const std::uint8_t protocol = view.frame[field];
    if (protocol == ip_protocol::kAh) return {Reason::unsupported, 0};
    field = next;
    next += protocol == ip_protocol::kFragment ? kBytesOf<Ipv6FragmentHeader>
                                               : (view.at<Ipv6Extension>(next).length + 1U) * 8;
  }
  return {Reason::none, field};
}

/// Sets the length and protocol of the packet whose IP header is at `network`. `ip_bytes` includes the header;
/// `protocol_at` is where IPv6 names the protocol. The IPv4 checksum is updated incrementally, so it stays wrong if it
/// was wrong.
PENSTOCK_HOST_DEVICE inline void set_protocol_and_length(std::uint8_t* frame, NetworkLayer family,
                                                         std::uint32_t network, std::uint32_t protocol_at,
                                                         std::uint8_t protocol, std::uint32_t ip_bytes) noexcept {
  if (family == NetworkLayer::ipv4) {
    auto& ip = *reinterpret_cast<Ipv4Header*>(frame + network);
    const auto ttl = static_cast<std::uint16_t>(ip.ttl << 8);
    std::uint16_t sum =
        checksum_update(ip.checksum.value(), ip.total_length.value(), static_cast<std::uint16_t>(ip_bytes));
    sum =
        checksum_update(sum, static_cast<std::uint16_t>(ttl | ip.protocol), static_cast<std::uint16_t>(ttl | protocol));
    ip.checksum.set(sum);
    ip.total_length.set(static_cast<std::uint16_t>(ip_bytes));
    ip.protocol = protocol;
    return;
  }
  auto& ip = *reinterpret_cast<Ipv6Header*>(frame + network);
  ip.payload_length.set(static_cast<std::uint16_t>(ip_bytes - kBytesOf<Ipv6Header>));
  frame[protocol_at] = protocol;
}

}  // namespace penstock::ipsec
