// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tunnels: GRE, and tunnels over UDP. decode_ip.cc handles IP in IP.

#include <algorithm>
#include <cstddef>

#include "base/host_address.h"
#include "packet/ethernet.h"
#include "packet/ip.h"
#include "packet/transport.h"
#include "stack/packet_decoding.h"

namespace penstock::stack {

namespace {

constexpr std::uint16_t kPpp = 0x880b, kBridge = 0x6558, kErspan = 0x88be;

/// Skips the source route entries of RFC 1701. Returns the length of the header including them; 0 if one is truncated.
std::size_t skip_source_route(Bytes bytes, std::size_t at) noexcept {
  constexpr std::size_t kEntry = 4;  // address family, offset, length
  for (;;) {
    if (at + kEntry > bytes.size()) return 0;
    const bool last = be16(bytes, at) == 0 && bytes[at + 3] == 0;
    at += kEntry + (last ? 0 : bytes[at + 3]);
    if (last) return at;
    if (at > bytes.size()) return 0;
  }
}

/// Version 0: RFC 2784, RFC 2890, and the fields of RFC 1701. Returns the header length; 0 if an event was set.
std::size_t gre_header_length(PacketDecoding& decoding, Bytes bytes) noexcept {
  const std::uint16_t flags = be16(bytes, 0);
  const auto wrong = [&](DecodeEvent event) { return decoding.wrong(event), std::size_t{0}; };
  if ((flags & 0x0700) != 0) return wrong(decode_event("gre.version0_recur"));
  if ((flags & 0x0078) != 0) return wrong(decode_event("gre.version0_flags"));
  std::size_t length = sizeof(GreHeader);
  if ((flags & GreHeader::kKey) != 0) length += 4;
  if ((flags & GreHeader::kSequence) != 0) length += 4;
  if ((flags & (GreHeader::kChecksum | GreHeader::kRouting)) != 0) length += 4;
  if (length > bytes.size()) return wrong(decode_event("gre.version0_hdr_too_big"));
  if ((flags & GreHeader::kRouting) != 0) {
    length = skip_source_route(bytes, length);
    if (length == 0) return wrong(decode_event("gre.version0_malformed_sre_hdr"));
  }
  return length;
}

/// Version 1: RFC 2637 §4.1.
std::size_t pptp_header_length(PacketDecoding& decoding, Bytes bytes) noexcept {
  constexpr std::uint16_t kAcknowledgment = 0x0080;
  const std::uint16_t flags = be16(bytes, 0);
  const auto wrong = [&](DecodeEvent event) { return decoding.wrong(event), std::size_t{0}; };
  if ((flags & GreHeader::kChecksum) != 0) return wrong(decode_event("gre.version1_chksum"));
  if ((flags & GreHeader::kRouting) != 0) return wrong(decode_event("gre.version1_route"));
  if ((flags & 0x0800) != 0) return wrong(decode_event("gre.version1_ssr"));
  if ((flags & 0x0700) != 0) return wrong(decode_event("gre.version1_recur"));
  if ((flags & 0x0078) != 0) return wrong(decode_event("gre.version1_flags"));
  if (be16(bytes, 2) != kPpp) return wrong(decode_event("gre.version1_wrong_protocol"));
  if ((flags & GreHeader::kKey) == 0) return wrong(decode_event("gre.version1_no_key"));
  std::size_t length = sizeof(GreHeader) + 4;  // payload length and call ID replace the key
  if ((flags & GreHeader::kSequence) != 0) length += 4;
  if ((flags & kAcknowledgment) != 0) length += 4;
  if (length > bytes.size()) return wrong(decode_event("gre.version1_hdr_too_big"));
  return length;
}

/// Whether the port is one of `ports`. Unused entries (0) come last.
constexpr bool is_one_of(const TunnelPorts::Ports& ports, std::uint16_t port) noexcept {
  for (const std::uint16_t one : ports) {
    if (one == port || one == 0) return one != 0;
  }
  return false;
}

/// RFC 4380 §2.14, and the prefix that was used before the RFC.
constexpr bool is_teredo(const Ipv6Address& address) noexcept {
  const std::uint64_t prefix = address.high >> 32;
  return prefix == 0x20010000 || prefix == 0x3ffe831f;
}

/// RFC 4380 §5.1.1: an authentication header, origin indications, an IPv6 packet; RFC 6081 adds trailers. Either
/// address is a Teredo address, or the packet is a router solicitation or its reply, with which a client obtains one.
/// Other protocols use the port too, and anyone can forge such a packet, so this is only a guess.
void decode_teredo(PacketDecoding& decoding) noexcept {
  constexpr std::size_t kOrigin = 8, kAuthentication = 13;  // plus client ID and authentication value
  Bytes bytes = decoding.packet.payload;
  while (bytes.size() >= sizeof(Ipv6Header) && bytes[0] == 0) {
    const std::size_t length = bytes[1] == 0 ? kOrigin : kAuthentication + bytes[2] + bytes[3];
    if (bytes[1] > 1 || bytes.size() < length + sizeof(Ipv6Header)) return;
    bytes = bytes.subspan(length);
  }
  if (bytes.size() < sizeof(Ipv6Header) || bytes[0] >> 4 != 6) return;
  const auto& ip = header_of<Ipv6Header>(bytes);
  const std::size_t length = sizeof(Ipv6Header) + ip.payload_length.value();
  const Ipv6Address source = ip.source_address(), destination = ip.destination_address();
  const bool asks = is_link_local(source) && ip.next_header == ip_protocol::kIcmpv6;
  if (bytes.size() < length || !(is_teredo(source) || is_teredo(destination) || asks)) return;
  decoding.carried = {Carried::Layer::teredo, bytes.first(length), true};
}

/// Decodes an inner Ethernet header and sets the packet after it as carried.
void carry_ethernet(PacketDecoding& decoding, Bytes frame, DecodeEvent unknown) noexcept {
  if (frame.size() < sizeof(EthernetHeader)) {
    decoding.packet.undecodable = true;
    return;
  }
  const std::uint16_t type = header_of<EthernetHeader>(frame).type.value();
  const Bytes inner = frame.subspan(sizeof(EthernetHeader));
  switch (type) {
    case ether_type::kIpv4: decoding.carried = {Carried::Layer::ipv4, inner}; return;
    case ether_type::kIpv6: decoding.carried = {Carried::Layer::ipv6, inner}; return;
    case ether_type::kVlan:
    case ether_type::kQinQ:
    case ether_type::kQinQLegacy: decoding.carried = {Carried::Layer::vlan, inner}; return;
    case ether_type::kArp: return;
    default: break;
  }
  if (type < ether_type::kLeast ? !llc_carries_no_ip(inner) : is_encapsulation(type)) {
    decoding.carried = {Carried::Layer::ethernet, frame};
    return;
  }
  decoding.packet.undecodable = type >= ether_type::kLeast && !carries_no_ip(type);
  decoding.wrong(unknown);
}

/// Decodes the payload of VXLAN. If the flag of the generic protocol extension (GPE) is set, the header names the
/// payload's protocol. Receivers without GPE ignore the flag, so IPv4 and IPv6 payloads are verified.
void decode_vxlan_payload(PacketDecoding& decoding, Bytes header, Bytes inner) noexcept {
  constexpr std::uint8_t kNextProtocol = 4, kVersion = 0x30, kGroupPolicy = 0x80;
  enum : std::uint8_t { ipv4 = 1, ipv6 = 2, nsh = 4 };
  const bool names = (header[0] & (kNextProtocol | kVersion | kGroupPolicy)) == kNextProtocol;
  const unsigned version = inner.empty() ? 0 : inner[0] >> 4;
  const auto fits = [&](std::size_t header_bytes, std::size_t length_at, std::size_t more) {
    return inner.size() >= header_bytes && be16(inner, length_at) + more <= inner.size();
  };
  if (names && header[3] == ipv4 && version == 4 && fits(sizeof(Ipv4Header), 2, 0)) {
    decoding.carried = {Carried::Layer::ipv4, inner};
  } else if (names && header[3] == ipv6 && version == 6 && fits(sizeof(Ipv6Header), 4, sizeof(Ipv6Header))) {
    decoding.carried = {Carried::Layer::ipv6, inner};
  } else if (names && header[3] == nsh) {
    decoding.carried = {Carried::Layer::nsh, inner};
  } else {
    carry_ethernet(decoding, inner, decode_event("vxlan.unknown_payload_type"));
  }
}

/// RFC 7348 §5: the VNI flag must be set. All other bits are ignored (group policies set some).
void decode_vxlan(PacketDecoding& decoding) noexcept {
  const Bytes bytes = decoding.packet.payload;
  if (bytes.size() < sizeof(VxlanHeader) || (bytes[0] & VxlanHeader::kVniPresent) == 0) return;
  if (!decoding.enter_layer()) return;
  decode_vxlan_payload(decoding, bytes.first(sizeof(VxlanHeader)), bytes.subspan(sizeof(VxlanHeader)));
}

/// RFC 8926 §3.4: reserved bits are ignored, and options are skipped without checking them.
void decode_geneve(PacketDecoding& decoding, bool guessed) noexcept {
  constexpr std::size_t kHeader = 8;
  const Bytes bytes = decoding.packet.payload;
  if (bytes.size() < kHeader) return;
  const std::size_t length = kHeader + (bytes[0] & 0x3fU) * 4;
  if (bytes.size() < length || bytes[0] >> 6 != 0) return;
  const std::uint16_t type = be16(bytes, 2);
  const bool is_known = type == ether_type::kIpv4 || type == ether_type::kIpv6 || type == kBridge;
  if (guessed && !is_known) return;
  if (!decoding.enter_layer()) return;
  const Bytes inner = bytes.subspan(length);
  switch (type) {
    case ether_type::kIpv4: decoding.carried = {Carried::Layer::ipv4, inner, guessed}; break;
    case ether_type::kIpv6: decoding.carried = {Carried::Layer::ipv6, inner, guessed}; break;
    case kBridge: decoding.carried = {Carried::Layer::ethernet, inner, guessed}; break;
    case ether_type::kArp: break;
    default:
      decoding.packet.undecodable = !carries_no_ip(type);
      decoding.wrong(decode_event("geneve.unknown_payload_type"));
      break;
  }
}

}  // namespace

void decode_gre(PacketDecoding& decoding, Bytes bytes) noexcept {
  if (bytes.size() < sizeof(GreHeader)) {
    decoding.wrong(decode_event("gre.pkt_too_small"));
    return;
  }
  if (!decoding.enter_layer()) return;
  const std::uint16_t flags = be16(bytes, 0);
  const unsigned version = flags & GreHeader::kVersionMask;
  if (version > 1) {
    decoding.wrong(decode_event("gre.wrong_version"));
    return;
  }
  const std::size_t length = version == 0 ? gre_header_length(decoding, bytes) : pptp_header_length(decoding, bytes);
  if (length == 0) return;
  const Bytes inner = bytes.subspan(length);
  using Layer = Carried::Layer;
  switch (be16(bytes, 2)) {
    case ether_type::kIpv4: decoding.carried = {Layer::ipv4, inner}; break;
    case ether_type::kIpv6: decoding.carried = {Layer::ipv6, inner}; break;
    case ether_type::kVlan: decoding.carried = {Layer::vlan, inner}; break;
    case ether_type::kArp: decoding.carried = {Layer::arp, inner}; break;
    case kBridge: decoding.carried = {Layer::ethernet, inner}; break;
    case ether_type::kNsh: decoding.carried = {Layer::nsh, inner}; break;
    case kPpp:  // RFC 2637 §4.1: a pure acknowledgment has no payload
      decoding.is_not_ip = version == 1 && be16(bytes, 4) == 0;
      if (!decoding.is_not_ip) decoding.carried = {Layer::ppp, inner};
      break;
    case kErspan:  // type I has no sequence number and no ERSPAN header
      decoding.carried = {(flags & GreHeader::kSequence) != 0 ? Layer::erspan : Layer::ethernet, inner};
      break;
    default: decoding.is_not_ip = inner.empty() || carries_no_ip(be16(bytes, 2)); break;
  }
}

/// Type II: version and VLAN, flags and session, index.
bool decode_erspan(PacketDecoding& decoding, Bytes bytes) noexcept {
  constexpr std::size_t kHeader = 8;
  DecodedPacket& packet = decoding.packet;
  const auto odd = [&](DecodeEvent event) { return decoding.note(event), false; };
  if (bytes.size() < kHeader) return odd(decode_event("erspan.header_too_small"));
  if (!decoding.enter_layer()) return false;
  const std::uint16_t word = be16(bytes, 0);
  if (word >> 12 != 1) return odd(decode_event("erspan.unsupported_version"));
  if (const std::uint16_t vlan = word & 0xfff; vlan > 0) {
    if (packet.vlan_count == packet.vlan_ids.size()) return odd(decode_event("erspan.too_many_vlan_layers"));
    packet.vlan_ids[packet.vlan_count++] = vlan;
  }
  return decode_ethernet(decoding, bytes.subspan(kHeader));
}

void decode_udp_tunnel(PacketDecoding& decoding) noexcept {
  const std::uint16_t source = decoding.packet.source.port, destination = decoding.packet.destination.port;
  const TunnelPorts& ports = decoding.ports;
  if (is_one_of(ports.vxlan, destination)) {
    decode_vxlan(decoding);
  } else if (is_one_of(ports.geneve, destination)) {
    decode_geneve(decoding, false);
  } else if (is_one_of(ports.teredo, source) || is_one_of(ports.teredo, destination)) {
    decode_teredo(decoding);
  } else if (is_one_of(ports.geneve, source)) {
    decode_geneve(decoding, true);  // the sender chooses the source port
  }
}

bool decode_carried(PacketDecoding& decoding, const Carried& carried) noexcept {
  switch (carried.layer) {
    case Carried::Layer::none: return false;
    case Carried::Layer::ethernet: return decode_ethernet(decoding, carried.bytes);
    case Carried::Layer::vlan: return decode_vlan(decoding, carried.bytes);
    case Carried::Layer::ipv4: return decode_ipv4(decoding, carried.bytes);
    case Carried::Layer::ipv6: return decode_ipv6(decoding, carried.bytes);
    case Carried::Layer::ppp: return decode_ppp(decoding, carried.bytes);
    case Carried::Layer::nsh: return decode_nsh(decoding, carried.bytes);
    case Carried::Layer::arp: return decode_arp(decoding, carried.bytes);
    case Carried::Layer::erspan: return decode_erspan(decoding, carried.bytes);
    case Carried::Layer::teredo: return decode_ipv6(decoding, carried.bytes) && !decoding.packet.invalid;
  }
  return false;
}

}  // namespace penstock::stack
