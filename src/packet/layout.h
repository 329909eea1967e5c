// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The positions of a frame's headers, which the shared stack determines once for all functions of the chain (Gaviss
// §4.4).

#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace penstock {

enum class NetworkLayer : std::uint8_t { none, ipv4, ipv6, arp, other };

/// The kind of packet that the transport payload contains, if any.
enum class Tunnel : std::uint8_t { none, ip_in_ip, gre, vxlan, esp };

/// Offsets count from the first byte of the frame. An offset is valid only if the flags and kinds say that its header
/// is present. `transport_offset` and `payload_offset` are always <= `end` <= the length of the frame.
struct PacketLayout {
  enum Flag : std::uint16_t {
    kNetworkHeader = 1,         // the IP header and its options are complete and consistent: addresses can be read
    kTransportHeader = 2,       // the TCP, UDP, SCTP or ICMP header is complete and within the IP packet
    kFragment = 4,              // one of several fragments
    kLaterFragment = 8,         // not the first fragment: it has no transport header
    kMalformed = 16,            // the IP or link header contradicts itself or the wire length of the frame
    kTruncated = 32,            // the capture truncated the packet (snapshot length)
    kOptions = 64,              // IPv4 options, or IPv6 extension headers
    kMalformedTransport = 128,  // the IP packet ends within the transport header, or TCP's data offset is too small
    kPorts = 256,  // the ports of TCP, UDP or SCTP are present, even if the rest is not; not set for fragments
  };

  std::uint16_t network_offset = 0;    // IP or ARP header; without one, the end of the link header
  std::uint16_t transport_offset = 0;  // after IPv4 options or IPv6 extension headers
  std::uint16_t payload_offset = 0;    // after the transport header
  std::uint16_t inner_offset = 0;      // first byte of the packet in a tunnel (ESP: the ESP header)
  std::uint32_t end = 0;               // end of the IP packet; link-layer padding follows
  std::uint16_t vlan_tci = 0;          // outermost tag
  std::uint16_t flags = 0;
  NetworkLayer network = NetworkLayer::none;
  std::uint8_t transport = 0;  // IP protocol number of the last header found
  std::uint8_t vlan_count = 0;
  Tunnel tunnel = Tunnel::none;

  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool has(Flag flag) const noexcept { return (flags & flag) != 0; }
  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool is_ip() const noexcept {
    return network == NetworkLayer::ipv4 || network == NetworkLayer::ipv6;
  }

  /// Length of the IP packet, including its header.
  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t ip_bytes() const noexcept { return end - network_offset; }

  friend constexpr bool operator==(const PacketLayout&, const PacketLayout&) = default;
};
static_assert(sizeof(PacketLayout) == 20);

}  // namespace penstock
