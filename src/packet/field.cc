// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "packet/field.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "packet/ethernet.h"
#include "packet/ip.h"
#include "packet/transport.h"

namespace penstock {

namespace {

constexpr std::array<std::string_view, kFieldCount> kNames{
    "eth_dst",          "eth_src",          "eth_type",       "vlan_tags",   "link_header",   "arp",
    "ipv4_version_ihl", "ipv4_tos",         "ipv4_length",    "ipv4_id",     "ipv4_fragment", "ipv4_ttl",
    "ipv4_protocol",    "ipv4_checksum",    "ipv4_src",       "ipv4_dst",    "ipv4_options",  "ipv6_class_label",
    "ipv6_length",      "ipv6_next_header", "ipv6_hop_limit", "ipv6_src",    "ipv6_dst",      "ipv6_extensions",
    "l4_src_port",      "l4_dst_port",      "l4_checksum",    "tcp_seq",     "tcp_ack",       "tcp_flags",
    "tcp_window",       "tcp_urgent",       "tcp_options",    "udp_length",  "sctp_tag",      "icmp_type_code",
    "icmp_rest",        "payload",          "trailer",        "frame_shape", "wire_length",   "timestamp",
    "in_port",          "verdict",          "mark",           "flow_hash"};

constexpr FieldSet fields_between(Field first, Field last) {
  FieldSet set;
  for (auto f = static_cast<unsigned>(first); f <= static_cast<unsigned>(last); ++f) set |= {static_cast<Field>(f)};
  return set;
}

struct Group {
  std::string_view name;
  FieldSet fields;
};
constexpr std::array<Group, 4> kGroups{{{"link", fields_between(Field::eth_dst, Field::arp)},
                                        {"ipv4", kIpv4HeaderFields},
                                        {"ipv6", kIpv6HeaderFields},
                                        {"l4", fields_between(Field::l4_src_port, Field::icmp_rest)}}};

enum class Transport { none, tcp, udp, sctp, icmp };

Transport transport_of(const PacketLayout& layout) noexcept {
  if (!layout.has(PacketLayout::kTransportHeader)) return Transport::none;
  switch (layout.transport) {
    case ip_protocol::kTcp: return Transport::tcp;
    case ip_protocol::kUdp:
    case ip_protocol::kUdpLite: return Transport::udp;
    case ip_protocol::kSctp: return Transport::sctp;
    default: return Transport::icmp;
  }
}

}  // namespace

std::string_view name(Field field) { return kNames[static_cast<unsigned>(field)]; }

std::string to_string(FieldSet fields) {
  std::string text;
  const auto add = [&](std::string_view word) {
    if (!text.empty()) text += ' ';
    text += word;
  };
  for (const Group& group : kGroups) {
    if ((group.fields - fields).empty()) {
      add(group.name);
      fields -= group.fields;
    }
  }
  for (unsigned f = 0; f < kFieldCount; ++f) {
    if (fields.has(static_cast<Field>(f))) add(kNames[f]);
  }
  return text.empty() ? "-" : text;
}

FieldRange field_range(Field field, const PacketLayout& layout, LinkType link_type,
                       std::uint32_t frame_length) noexcept {
  constexpr auto kNone = FieldRange{};
  const std::uint32_t l2_end = layout.network_offset;
  const std::uint32_t l3 = layout.network_offset;
  const std::uint32_t l4 = layout.transport_offset;
  const bool ethernet = link_type == LinkType::ethernet && l2_end >= sizeof(EthernetHeader);
  const bool ipv4 = layout.network == NetworkLayer::ipv4 && layout.has(PacketLayout::kNetworkHeader);
  const bool ipv6 = layout.network == NetworkLayer::ipv6 && layout.has(PacketLayout::kNetworkHeader);
  const bool arp = layout.network == NetworkLayer::arp && layout.has(PacketLayout::kNetworkHeader);
  const Transport transport = transport_of(layout);
  const auto when = [&](bool there, std::uint32_t offset, std::uint32_t length) {
    return there ? FieldRange{offset, length} : kNone;
  };
  const auto ipv4_at = [&](std::uint32_t offset, std::uint32_t length) { return when(ipv4, l3 + offset, length); };
  const auto ipv6_at = [&](std::uint32_t offset, std::uint32_t length) { return when(ipv6, l3 + offset, length); };
  const auto l4_at = [&](Transport kind, std::uint32_t offset, std::uint32_t length) {
    return when(transport == kind, l4 + offset, length);
  };
  const bool ports = transport != Transport::none && transport != Transport::icmp;

  switch (field) {
    case Field::eth_dst: return when(ethernet, 0, 6);
    case Field::eth_src: return when(ethernet, 6, 6);
    // The innermost type field; the outer tag types belong to the tags.
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
        case Transport::tcp: return {l4 + 16, 2};
        case Transport::udp: return {l4 + 6, 2};
        case Transport::sctp: return {l4 + 8, 4};
        case Transport::icmp: return {l4 + 2, 2};
        case Transport::none: return kNone;
      }
      return kNone;
    case Field::tcp_seq: return l4_at(Transport::tcp, 4, 4);
    case Field::tcp_ack: return l4_at(Transport::tcp, 8, 4);
    case Field::tcp_flags: return l4_at(Transport::tcp, 12, 2);
    case Field::tcp_window: return l4_at(Transport::tcp, 14, 2);
    case Field::tcp_urgent: return l4_at(Transport::tcp, 18, 2);
    case Field::tcp_options: return l4_at(Transport::tcp, 20, layout.payload_offset - l4 - 20);
    case Field::udp_length: return l4_at(Transport::udp, 4, 2);
    case Field::sctp_tag: return l4_at(Transport::sctp, 4, 4);
    case Field::icmp_type_code: return l4_at(Transport::icmp, 0, 2);
    case Field::icmp_rest: return l4_at(Transport::icmp, 4, 4);
    case Field::payload: return {layout.payload_offset, layout.end - layout.payload_offset};
    case Field::trailer: return {layout.end, frame_length - layout.end};
    default: return kNone;
  }
}

}  // namespace penstock
