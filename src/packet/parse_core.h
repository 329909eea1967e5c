// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds the headers of one frame, on host and device. Pure, and never reads beyond `length`, whatever the bytes are.
// The functions are in the order of the headers.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "packet/ethernet.h"
#include "packet/ip.h"
#include "packet/layout.h"
#include "packet/link_type.h"
#include "packet/packet.h"
#include "packet/transport.h"

namespace penstock {

namespace parse_detail {

/// A frame that is being parsed. `wire_length` >= `length`.
struct Frame {
  const std::uint8_t* bytes;
  std::uint32_t length;
  std::uint32_t wire_length;

  [[nodiscard]] PENSTOCK_HOST_DEVICE std::uint16_t be16(std::uint32_t at) const noexcept {
    return static_cast<std::uint16_t>(bytes[at] << 8 | bytes[at + 1]);
  }
  template <typename Header>
  [[nodiscard]] PENSTOCK_HOST_DEVICE const Header& as(std::uint32_t at) const noexcept {
    return *reinterpret_cast<const Header*>(bytes + at);
  }
};

/// The flag for an incomplete header: truncated by the capture, or malformed because it does not fit in the frame on
/// the wire.
PENSTOCK_HOST_DEVICE inline std::uint16_t cut_short(const Frame& frame, std::uint32_t need) noexcept {
  return need <= frame.wire_length ? PacketLayout::kTruncated : PacketLayout::kMalformed;
}

template <typename Header>
inline constexpr std::uint32_t kSizeOf = sizeof(Header);

inline constexpr unsigned kMostVlanTags = 8;
inline constexpr unsigned kMostExtensionHeaders = 16;

/// Skips the VLAN tags after a link header that ends at `network_offset` and has the given `type`. Sets the tags and
/// `network_offset`. Returns the EtherType of what follows, or 0 if a tag is incomplete.
PENSTOCK_HOST_DEVICE inline std::uint16_t parse_vlan_tags(const Frame& frame, PacketLayout& layout,
                                                          std::uint16_t type) noexcept {
  std::uint32_t at = layout.network_offset;
  while (type == ether_type::kVlan || type == ether_type::kQinQ || type == ether_type::kQinQLegacy) {
    if (layout.vlan_count == kMostVlanTags) {
      layout.flags |= PacketLayout::kMalformed;
      return 0;
    }
    if (frame.length < at + kSizeOf<VlanTag>) {
      layout.flags |= cut_short(frame, at + kSizeOf<VlanTag>);
      return 0;
    }
    if (layout.vlan_count == 0) layout.vlan_tci = frame.be16(at);
    type = frame.be16(at + 2);
    at += kSizeOf<VlanTag>;
    layout.network_offset = static_cast<std::uint16_t>(at);
    ++layout.vlan_count;
  }
  return type;
}

/// Raw IP has no link header, so the version nibble determines the type.
PENSTOCK_HOST_DEVICE inline std::uint16_t ether_type_of_version(const Frame& frame, std::uint32_t at) noexcept {
  if (at >= frame.length) return 0;
  const unsigned version = frame.bytes[at] >> 4;
  return version == 4 ? ether_type::kIpv4 : version == 6 ? ether_type::kIpv6 : std::uint16_t{0};
}

/// AF_INET is 2 everywhere; AF_INET6 is 10 on Linux and 24, 28 or 30 on the BSDs and macOS.
PENSTOCK_HOST_DEVICE inline std::uint16_t ether_type_of_family(std::uint32_t family) noexcept {
  if (family == 2) return ether_type::kIpv4;
  if (family == 10 || family == 24 || family == 28 || family == 30) return ether_type::kIpv6;
  return 0;
}

PENSTOCK_HOST_DEVICE inline std::uint16_t parse_family(const Frame& frame, PacketLayout& layout,
                                                       bool network_order) noexcept {
  if (frame.length < 4) {
    layout.flags |= cut_short(frame, 4);
    return 0;
  }
  layout.network_offset = 4;
  const std::uint8_t* b = frame.bytes;
  const std::uint32_t big = std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
  const std::uint32_t little = std::uint32_t{b[3]} << 24 | std::uint32_t{b[2]} << 16 | std::uint32_t{b[1]} << 8 | b[0];
  // DLT_NULL uses the capturing host's byte order, which the file does not always state. Since families are small
  // numbers, it can be inferred.
  return ether_type_of_family(network_order || (big & 0xffff0000) == 0 ? big : little);
}

/// RFC 1661, RFC 1662: the address and control bytes may be omitted, and so may a leading 0 of the protocol.
PENSTOCK_HOST_DEVICE inline std::uint16_t parse_ppp(const Frame& frame, PacketLayout& layout) noexcept {
  std::uint32_t at = 0;
  if (frame.length >= 2 && frame.bytes[0] == 0xff && frame.bytes[1] == 0x03) at = 2;
  const bool compressed = frame.length > at && (frame.bytes[at] & 1) != 0;
  const std::uint32_t width = compressed ? 1 : 2;
  if (frame.length < at + width) {
    layout.flags |= cut_short(frame, at + width);
    return 0;
  }
  const std::uint32_t protocol = compressed ? frame.bytes[at] : frame.be16(at);
  layout.network_offset = static_cast<std::uint16_t>(at + width);
  return protocol == 0x0021 ? ether_type::kIpv4 : protocol == 0x0057 ? ether_type::kIpv6 : std::uint16_t{0};
}

/// Parses a header of `length` bytes with an EtherType at `type_offset`, and VLAN tags after it. Returns the EtherType
/// of what follows, or 0 if a header is incomplete.
PENSTOCK_HOST_DEVICE inline std::uint16_t parse_fixed(const Frame& frame, PacketLayout& layout, std::uint32_t length,
                                                      std::uint32_t type_offset) noexcept {
  if (frame.length < length) {
    layout.flags |= cut_short(frame, length);
    return 0;
  }
  layout.network_offset = static_cast<std::uint16_t>(length);
  return parse_vlan_tags(frame, layout, frame.be16(type_offset));
}

/// Skips the link header and VLAN tags, and sets `network_offset` and the tags. Returns the EtherType of what follows,
/// or 0 if the header is incomplete or has no EtherType.
PENSTOCK_HOST_DEVICE inline std::uint16_t parse_link(const Frame& frame, LinkType link, PacketLayout& layout) noexcept {
  switch (link) {
    case LinkType::ethernet: return parse_fixed(frame, layout, kSizeOf<EthernetHeader>, 12);
    case LinkType::raw_ip: return ether_type_of_version(frame, 0);
    case LinkType::null_host: return parse_family(frame, layout, false);
    case LinkType::loop: return parse_family(frame, layout, true);
    case LinkType::linux_sll: return parse_fixed(frame, layout, kSizeOf<LinuxSllHeader>, 14);
    case LinkType::linux_sll2: return parse_fixed(frame, layout, kSizeOf<LinuxSll2Header>, 0);
    case LinkType::ppp: return parse_ppp(frame, layout);
    case LinkType::cisco_hdlc: return parse_fixed(frame, layout, 4, 2);
  }
  return 0;
}

/// `wire_end` is the end of the IP packet by its own length field. `layout.end` is limited to the captured bytes.
PENSTOCK_HOST_DEVICE inline bool set_end(const Frame& frame, PacketLayout& layout, std::uint32_t wire_end) noexcept {
  if (wire_end > frame.wire_length) {
    layout.flags |= PacketLayout::kMalformed;
    return false;
  }
  layout.end = wire_end;
  if (wire_end > frame.length) {
    layout.end = frame.length;
    layout.flags |= PacketLayout::kTruncated;
  }
  return true;
}

/// RFC 791. Returns where the packet ends on the wire, or 0 if there is no transport header to parse.
PENSTOCK_HOST_DEVICE inline std::uint32_t parse_ipv4(const Frame& frame, PacketLayout& layout) noexcept {
  const std::uint32_t at = layout.network_offset;
  layout.network = NetworkLayer::ipv4;
  if (frame.length < at + kSizeOf<Ipv4Header>) {
    layout.flags |= cut_short(frame, at + kSizeOf<Ipv4Header>);
    return 0;
  }
  const auto& ip = frame.as<Ipv4Header>(at);
  const std::uint32_t header_length = ip.header_length();
  const std::uint32_t total_length = ip.total_length.value();
  if (ip.version() != 4 || header_length < kSizeOf<Ipv4Header> || total_length < header_length) {
    layout.flags |= PacketLayout::kMalformed;
    return 0;
  }
  if (frame.length < at + header_length) {
    layout.flags |= cut_short(frame, at + header_length);
    return 0;
  }
  const std::uint32_t wire_end = at + total_length;
  if (!set_end(frame, layout, wire_end)) return 0;
  layout.flags |= PacketLayout::kNetworkHeader;
  if (header_length > kSizeOf<Ipv4Header>) layout.flags |= PacketLayout::kOptions;
  layout.transport = ip.protocol;
  layout.transport_offset = layout.payload_offset = static_cast<std::uint16_t>(at + header_length);
  const std::uint16_t fragment = ip.fragment.value();
  if ((fragment & (Ipv4Header::kMoreFragments | Ipv4Header::kOffsetMask)) != 0) {
    layout.flags |= PacketLayout::kFragment;
    if ((fragment & Ipv4Header::kOffsetMask) != 0) {
      layout.flags |= PacketLayout::kLaterFragment;
      return 0;
    }
  }
  return wire_end;
}

/// RFC 2675 §3: the end of a packet with payload length 0, from the jumbo payload option at the start of the hop-by-hop
/// header at `at`. 0 if there is none, or if it is incomplete.
PENSTOCK_HOST_DEVICE inline std::uint32_t parse_jumbo_payload(const Frame& frame, PacketLayout& layout,
                                                              std::uint32_t at) noexcept {
  constexpr std::uint32_t kLength = 8;
  if (frame.length < at + kLength) {
    layout.flags |= cut_short(frame, at + kLength);
    return 0;
  }
  const std::uint32_t payload = std::uint32_t{frame.be16(at + 4)} << 16 | frame.be16(at + 6);
  // Avoid an overflow of the sum.
  if (frame.be16(at + 2) != 0xc204 || payload <= 0xffff || payload > frame.wire_length - at) {
    layout.flags |= PacketLayout::kMalformed;
    return 0;
  }
  return at + payload;
}

/// RFC 8200, with the extension headers that Linux skips too. Returns the same as `parse_ipv4`.
PENSTOCK_HOST_DEVICE inline std::uint32_t parse_ipv6(const Frame& frame, PacketLayout& layout) noexcept {
  const std::uint32_t at = layout.network_offset;
  layout.network = NetworkLayer::ipv6;
  if (frame.length < at + kSizeOf<Ipv6Header>) {
    layout.flags |= cut_short(frame, at + kSizeOf<Ipv6Header>);
    return 0;
  }
  const auto& ip = frame.as<Ipv6Header>(at);
  if (frame.bytes[at] >> 4 != 6) {
    layout.flags |= PacketLayout::kMalformed;
    return 0;
  }
  const std::uint32_t payload_length = ip.payload_length.value();
  const std::uint32_t header_end = at + kSizeOf<Ipv6Header>;
  const bool jumbo = payload_length == 0 && ip.next_header == ip_protocol::kHopByHop;
  const std::uint32_t wire_end = jumbo ? parse_jumbo_payload(frame, layout, header_end) : header_end + payload_length;
  if (wire_end == 0) return 0;
  if (!set_end(frame, layout, wire_end)) return 0;
  layout.flags |= PacketLayout::kNetworkHeader;

  std::uint32_t next = header_end;
  std::uint8_t protocol = ip.next_header;
  for (unsigned headers = 0;; ++headers) {
    layout.transport = protocol;
    layout.transport_offset = layout.payload_offset = static_cast<std::uint16_t>(next);
    const bool fragment = protocol == ip_protocol::kFragment;
    const bool authentication = protocol == ip_protocol::kAh;
    if (!fragment && !authentication && protocol != ip_protocol::kHopByHop && protocol != ip_protocol::kRouting &&
        protocol != ip_protocol::kDestinationOptions) {
      return wire_end;
    }
    layout.flags |= PacketLayout::kOptions;
    const std::uint32_t least = next + (fragment ? kSizeOf<Ipv6FragmentHeader> : kSizeOf<Ipv6Extension>);
    if (headers == kMostExtensionHeaders || least > wire_end) {
      layout.flags |= PacketLayout::kMalformed;
      return 0;
    }
    if (least > layout.end) return 0;  // truncated, as set_end found
    const auto& extension = frame.as<Ipv6Extension>(next);
    std::uint32_t length = (extension.length + 1U) * 8;
    if (fragment) length = kSizeOf<Ipv6FragmentHeader>;
    if (authentication) length = (extension.length + 2U) * 4;  // RFC 4302 §2.2
    if (next + length > wire_end) {
      layout.flags |= PacketLayout::kMalformed;
      return 0;
    }
    if (next + length > layout.end) return 0;
    protocol = extension.next_header;
    if (fragment) {
      const std::uint16_t word = frame.as<Ipv6FragmentHeader>(next).fragment.value();
      // An atomic fragment (RFC 6946) is a complete packet.
      if ((word & (Ipv6FragmentHeader::kOffsetMask | Ipv6FragmentHeader::kMoreFragments)) != 0) {
        layout.flags |= PacketLayout::kFragment;
      }
      if ((word & Ipv6FragmentHeader::kOffsetMask) != 0) {
        layout.flags |= PacketLayout::kLaterFragment;
        layout.transport = protocol;
        layout.transport_offset = layout.payload_offset = static_cast<std::uint16_t>(next + length);
        return 0;
      }
    }
    next += length;
  }
}

PENSTOCK_HOST_DEVICE inline std::uint32_t transport_header_length(const Frame& frame,
                                                                  const PacketLayout& layout) noexcept {
  switch (layout.transport) {
    case ip_protocol::kTcp: {
      const std::uint32_t at = layout.transport_offset;
      if (layout.end < at + kSizeOf<TcpHeader>) return kSizeOf<TcpHeader>;
      return frame.as<TcpHeader>(at).header_length();
    }
    case ip_protocol::kUdp:
    case ip_protocol::kUdpLite: return kSizeOf<UdpHeader>;
    case ip_protocol::kSctp: return kSizeOf<SctpHeader>;
    case ip_protocol::kIcmp: return layout.network == NetworkLayer::ipv4 ? kSizeOf<IcmpHeader> : 0;
    case ip_protocol::kIcmpv6: return layout.network == NetworkLayer::ipv6 ? kSizeOf<IcmpHeader> : 0;
    default: return 0;
  }
}

/// The length of a GRE header (RFC 2784, RFC 2890); 0 if it cannot be determined.
PENSTOCK_HOST_DEVICE inline std::uint32_t gre_header_length(const Frame& frame, std::uint32_t at,
                                                            std::uint32_t end) noexcept {
  if (end < at + kSizeOf<GreHeader>) return 0;
  const std::uint16_t flags = frame.be16(at);
  if ((flags & (GreHeader::kRouting | GreHeader::kVersionMask)) != 0) return 0;
  std::uint32_t length = kSizeOf<GreHeader>;
  for (const std::uint16_t part : {GreHeader::kChecksum, GreHeader::kKey, GreHeader::kSequence}) {
    if ((flags & part) != 0) length += 4;
  }
  return length;
}

PENSTOCK_HOST_DEVICE inline void recognise_tunnel(const Frame& frame, PacketLayout& layout) noexcept {
  const std::uint32_t at = layout.transport_offset;
  std::uint32_t inner = 0;
  Tunnel tunnel = Tunnel::none;
  switch (layout.transport) {
    case ip_protocol::kIpv4:
    case ip_protocol::kIpv6:
      tunnel = Tunnel::ip_in_ip;
      inner = at;
      break;
    case ip_protocol::kEsp:
      tunnel = Tunnel::esp;
      inner = layout.end >= at + kSizeOf<EspHeader> ? at : 0;
      break;
    case ip_protocol::kGre: {
      const std::uint32_t length = gre_header_length(frame, at, layout.end);
      tunnel = Tunnel::gre;
      inner = length != 0 ? at + length : 0;
      break;
    }
    case ip_protocol::kUdp:
      if (layout.has(PacketLayout::kTransportHeader) && frame.be16(at + 2) == VxlanHeader::kPort &&
          layout.end >= layout.payload_offset + kSizeOf<VxlanHeader> &&
          (frame.bytes[layout.payload_offset] & VxlanHeader::kVniPresent) != 0) {
        tunnel = Tunnel::vxlan;
        inner = layout.payload_offset + kSizeOf<VxlanHeader>;
      }
      break;
    default: break;
  }
  if (inner != 0 && inner < layout.end) {
    layout.tunnel = tunnel;
    layout.inner_offset = static_cast<std::uint16_t>(inner);
  }
}

/// The UDP length is ignored: Linux ignores it when forwarding, and receivers drop inconsistent datagrams.
PENSTOCK_HOST_DEVICE inline void parse_transport(const Frame& frame, PacketLayout& layout,
                                                 std::uint32_t wire_end) noexcept {
  constexpr std::uint32_t kPortBytes = 4;
  const std::uint32_t at = layout.transport_offset;
  // Independent of the other flags, so that a snapshot length cannot split a flow into packets with complete and
  // incomplete headers.
  if (begins_with_ports(layout.transport) && !layout.has(PacketLayout::kFragment) && at + kPortBytes <= layout.end) {
    layout.flags |= PacketLayout::kPorts;
  }
  const std::uint32_t length = transport_header_length(frame, layout);
  if (length != 0 || layout.transport == ip_protocol::kTcp) {
    const bool too_short = layout.transport == ip_protocol::kTcp && length < kSizeOf<TcpHeader>;
    if (too_short || at + length > wire_end) {
      layout.flags |= PacketLayout::kMalformedTransport;
    } else if (at + length <= layout.end) {
      layout.flags |= PacketLayout::kTransportHeader;
      layout.payload_offset = static_cast<std::uint16_t>(at + length);
    }
  }
  recognise_tunnel(frame, layout);
}

}  // namespace parse_detail

/// Returns the layout of a frame with `length` captured bytes and `wire_length` bytes on the wire. Reads the header
/// fields in `kParsedFields`; `tunnel` and `inner_offset` also depend on `kTunnelFields`.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline PacketLayout parse(const std::uint8_t* frame, std::uint32_t length,
                                                             std::uint32_t wire_length, LinkType link) noexcept {
  using namespace parse_detail;
  const Frame f{frame, length, wire_length > length ? wire_length : length};
  PacketLayout layout;
  const std::uint16_t type = parse_link(f, link, layout);
  layout.transport_offset = layout.payload_offset = layout.network_offset;
  layout.end = length;
  switch (type) {
    case 0: return layout;
    case ether_type::kIpv4: {
      const std::uint32_t wire_end = parse_ipv4(f, layout);
      if (wire_end != 0) parse_transport(f, layout, wire_end);
      return layout;
    }
    case ether_type::kIpv6: {
      const std::uint32_t wire_end = parse_ipv6(f, layout);
      if (wire_end != 0) parse_transport(f, layout, wire_end);
      return layout;
    }
    case ether_type::kArp:
      layout.network = NetworkLayer::arp;
      if (length >= layout.network_offset + kSizeOf<ArpHeader>) {
        layout.flags |= PacketLayout::kNetworkHeader;
        layout.transport_offset = layout.payload_offset =
            static_cast<std::uint16_t>(layout.network_offset + kSizeOf<ArpHeader>);
      } else {
        layout.flags |= cut_short(f, layout.network_offset + kSizeOf<ArpHeader>);
      }
      return layout;
    default: layout.network = NetworkLayer::other; return layout;
  }
}

/// Parses a packet of a batch, and stores the layout in its descriptor.
PENSTOCK_HOST_DEVICE inline void parse(PacketView view) noexcept {
  PacketDescriptor& packet = *view.packet;
  packet.layout = parse(view.frame, packet.length, packet.wire_length, packet.link_type);
}

}  // namespace penstock
