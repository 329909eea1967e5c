// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the headers of one frame lie: what the shared stack finds once for all NFs of the chain (Gaviss §4.4).

#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace penstock {

enum class NetworkLayer : std::uint8_t { none, ipv4, ipv6, arp, other };

/// What the transport payload carries, where it is a packet of its own.
enum class Tunnel : std::uint8_t { none, ip_in_ip, gre, vxlan, esp };

/// Offsets count from the first byte of the frame. An offset is meant only where the flags and the kinds say that
/// its header is there; `transport_offset` and `payload_offset` are always <= `end` <= the frame's length.
struct PacketLayout {
  enum Flag : std::uint16_t {
    kNetworkHeader = 1,         // the IP header, options included, is whole and consistent: addresses can be read
    kTransportHeader = 2,       // the TCP, UDP, SCTP or ICMP header is whole and lies in the IP packet
    kFragment = 4,              // one of several fragments
    kLaterFragment = 8,         // one that is not the first: it has no transport header
    kMalformed = 16,            // the IP or link header contradicts itself or the frame's length on the wire
    kTruncated = 32,            // the capture ends (snap length) before the packet does
    kOptions = 64,              // IPv4 options, or IPv6 extension headers
    kMalformedTransport = 128,  // the IP packet ends inside that header, or TCP's data offset contradicts it
    kPorts = 256,               // the two ports of TCP, UDP or SCTP are there, whatever follows them; not in fragments
  };

  std::uint16_t network_offset = 0;    // IP or ARP header; end of the link header where there is none
  std::uint16_t transport_offset = 0;  // behind IPv4 options or IPv6 extension headers
  std::uint16_t payload_offset = 0;    // behind the transport header
  std::uint16_t inner_offset = 0;      // first byte of the packet in a tunnel (ESP: of the ESP header)
  std::uint32_t end = 0;               // of the IP packet; link-layer padding follows
  std::uint16_t vlan_tci = 0;          // outermost tag
  std::uint16_t flags = 0;
  NetworkLayer network = NetworkLayer::none;
  std::uint8_t transport = 0;  // IP protocol number of the last header that was reached
  std::uint8_t vlan_count = 0;
  Tunnel tunnel = Tunnel::none;

  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool has(Flag flag) const noexcept { return (flags & flag) != 0; }
  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool is_ip() const noexcept {
    return network == NetworkLayer::ipv4 || network == NetworkLayer::ipv6;
  }

  /// Of the IP packet, its header included.
  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t ip_bytes() const noexcept { return end - network_offset; }

  friend constexpr bool operator==(const PacketLayout&, const PacketLayout&) = default;
};
static_assert(sizeof(PacketLayout) == 20);

}  // namespace penstock
