// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The byte ranges of a packet's fields in its frame, for host and device. Used to gather, scatter, compare and print
// fields.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "packet/ethernet.h"
#include "packet/field.h"
#include "packet/ip.h"
#include "packet/layout.h"
#include "packet/link_type.h"
#include "packet/transport.h"

namespace penstock {

/// Bytes [offset, offset + length) of the frame; length 0 if the frame does not have the field.
struct FieldRange {
  std::uint32_t offset = 0;
  std::uint32_t length = 0;
};

enum class TransportHeader : std::uint8_t { none, tcp, udp, sctp, icmp };

[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr TransportHeader transport_header_of(const PacketLayout& layout) noexcept {
  if (!layout.has(PacketLayout::kTransportHeader)) return TransportHeader::none;
  switch (layout.transport) {
    case ip_protocol::kTcp: return TransportHeader::tcp;
    case ip_protocol::kUdp:
    case ip_protocol::kUdpLite: return TransportHeader::udp;
    case ip_protocol::kSctp: return TransportHeader::sctp;
    default: return TransportHeader::icmp;
  }
}

/// The range of `field` in a frame of `frame_length` bytes with this layout. Metadata fields have length 0.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline FieldRange field_range(Field field, const PacketLayout& layout,
                                                                 LinkType link_type,
                                                                 std::uint32_t frame_length) noexcept {
  constexpr FieldRange kNone{};
  const std::uint32_t l2_end = layout.network_offset;
  const std::uint32_t l3 = layout.network_offset;
  const std::uint32_t l4 = layout.transport_offset;
  const bool ethernet = link_type == LinkType::ethernet && l2_end >= sizeof(EthernetHeader);
  const bool ipv4 = layout.network == NetworkLayer::ipv4 && layout.has(PacketLayout::kNetworkHeader);
  const bool ipv6 = layout.network == NetworkLayer::ipv6 && layout.has(PacketLayout::kNetworkHeader);
  const bool arp = layout.network == NetworkLayer::arp && layout.has(PacketLayout::kNetworkHeader);
  const TransportHeader transport = transport_header_of(layout);
  const auto when = [&](bool there, std::uint32_t offset, std::uint32_t length) {
    return there ? FieldRange{offset, length} : kNone;
  };
  const auto ipv4_at = [&](std::uint32_t offset, std::uint32_t length) { return when(ipv4, l3 + offset, length); };
  const auto ipv6_at = [&](std::uint32_t offset, std::uint32_t length) { return when(ipv6, l3 + offset, length); };
  const auto l4_at = [&](TransportHeader kind, std::uint32_t offset, std::uint32_t length) {
    return when(transport == kind, l4 + offset, length);
  };
  const bool ports = transport != TransportHeader::none && transport != TransportHeader::icmp;

  switch (field) {
    case Field::eth_dst: return when(ethernet, 0, 6);
    case Field::eth_src: return when(ethernet, 6, 6);
    // The innermost type field; outer tag types are part of the tags.
    case Field::eth_type: return when(ethernet, l2_end - 2, 2);
    case Field::vlan_tags: return when(ethernet, 12, l2_end - 14);
    case Field::link_header: return when(!ethernet, 0, l2_end);
    case Field::arp: return when(arp, l3, sizeof(ArpHeader));
    case Field::ipv4_version_ihl: return ipv4_at(0, 1);
    case Field::ipv4_tos: return ipv4_at(1, 1);
    case Field::ipv4_length: return ipv4_at(2, 2);
    case Field::ipv4_id: return ipv4_at(4, 2);
    case Field::ipv4_fragment: return ipv4_at(6, 2);
    case Field::ipv4_ttl: return ipv4_at(8, 1);
    case Field::ipv4_protocol: return ipv4_at(9, 1);
    case Field::ipv4_checksum: return ipv4_at(10, 2);
    case Field::ipv4_src: return ipv4_at(12, 4);
    case Field::ipv4_dst: return ipv4_at(16, 4);
    case Field::ipv4_options: return ipv4_at(20, l4 - l3 - 20);
    case Field::ipv6_class_label: return ipv6_at(0, 4);
    case Field::ipv6_length: return ipv6_at(4, 2);
    case Field::ipv6_next_header: return ipv6_at(6, 1);
    case Field::ipv6_hop_limit: return ipv6_at(7, 1);
    case Field::ipv6_src: return ipv6_at(8, 16);
    case Field::ipv6_dst: return ipv6_at(24, 16);
    case Field::ipv6_extensions: return ipv6_at(40, l4 - l3 - 40);
    case Field::l4_src_port: return when(ports, l4, 2);
    case Field::l4_dst_port: return when(ports, l4 + 2, 2);
    case Field::l4_checksum:
      switch (transport) {
        case TransportHeader::tcp: return {l4 + 16, 2};
        case TransportHeader::udp: return {l4 + 6, 2};
        case TransportHeader::sctp: return {l4 + 8, 4};
        case TransportHeader::icmp: return {l4 + 2, 2};
        case TransportHeader::none: return kNone;
      }
      return kNone;
    case Field::tcp_seq: return l4_at(TransportHeader::tcp, 4, 4);
    case Field::tcp_ack: return l4_at(TransportHeader::tcp, 8, 4);
    case Field::tcp_flags: return l4_at(TransportHeader::tcp, 12, 2);
    case Field::tcp_window: return l4_at(TransportHeader::tcp, 14, 2);
    case Field::tcp_urgent: return l4_at(TransportHeader::tcp, 18, 2);
    case Field::tcp_options: return l4_at(TransportHeader::tcp, 20, layout.payload_offset - l4 - 20);
    case Field::udp_length: return l4_at(TransportHeader::udp, 4, 2);
    case Field::sctp_tag: return l4_at(TransportHeader::sctp, 4, 4);
    case Field::icmp_type_code: return l4_at(TransportHeader::icmp, 0, 2);
    case Field::icmp_rest: return l4_at(TransportHeader::icmp, 4, 4);
    case Field::payload: return {layout.payload_offset, layout.end - layout.payload_offset};
    case Field::trailer: return {layout.end, frame_length - layout.end};
    default: return kNone;
  }
}

}  // namespace penstock
