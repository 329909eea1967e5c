// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Parses the most frequent kind of frame in few steps, for who parses very many and does little else with them.

#pragma once

#include <cstdint>

#include "packet/packet.h"

namespace penstock {

/// For TCP and UDP over IPv4 over Ethernet: without VLAN tags, options or fragments, with nothing truncated or
/// malformed, and not VXLAN. Stores the layout in the descriptor, the same as `parse` does. False, with nothing
/// changed: it is another frame.
[[nodiscard]] inline bool parse_plain(PacketView view) noexcept {
  constexpr std::uint32_t kTransport = sizeof(EthernetHeader) + sizeof(Ipv4Header);
  constexpr std::uint16_t kFragmented = Ipv4Header::kMoreFragments | Ipv4Header::kOffsetMask;
  PacketDescriptor& packet = *view.packet;
  if (packet.link_type != LinkType::ethernet || packet.length < kTransport + sizeof(TcpHeader)) return false;
  const auto& ip = view.at<Ipv4Header>(sizeof(EthernetHeader));
  if (view.ethernet().type.value() != ether_type::kIpv4 || ip.version_ihl != 0x45 ||
      (ip.fragment.value() & kFragmented) != 0) {
    return false;
  }
  std::uint32_t header = sizeof(UdpHeader);
  if (ip.protocol == ip_protocol::kTcp) {
    header = view.at<TcpHeader>(kTransport).header_length();
    if (header < sizeof(TcpHeader)) return false;
  } else if (ip.protocol != ip_protocol::kUdp ||
             view.at<UdpHeader>(kTransport).destination_port.value() == VxlanHeader::kPort) {
    return false;
  }
  const std::uint32_t end = static_cast<std::uint32_t>(sizeof(EthernetHeader)) + ip.total_length.value();
  if (end > packet.length || kTransport + header > end) return false;
  packet.layout = {.network_offset = sizeof(EthernetHeader),
                   .transport_offset = kTransport,
                   .payload_offset = static_cast<std::uint16_t>(kTransport + header),
                   .end = end,
                   .flags = PacketLayout::kNetworkHeader | PacketLayout::kTransportHeader | PacketLayout::kPorts,
                   .network = NetworkLayer::ipv4,
                   .transport = ip.protocol};
  return true;
}

}  // namespace penstock
