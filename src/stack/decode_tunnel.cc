// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What carries packets: GRE, and tunnels over UDP. IP in IP stands in decode_ip.cc.

#include <cstring>

#include "packet/ethernet.h"
#include "packet/ip.h"
#include "packet/transport.h"
#include "stack/packet_decoding.h"

namespace penstock::stack {

namespace {

constexpr std::uint16_t kPpp = 0x880b, kBridge = 0x6558, kErspan = 0x88be, kNsh = 0x894f;
constexpr std::uint16_t kTeredoPort = 3544, kGenevePort = 6081;

/// RFC 1701's source route, entry after entry. The length of the header with it; 0 where an entry is not whole.
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

/// Version 0: RFC 2784, RFC 2890 and what RFC 1701 had. The header's length; 0 where an event was told.
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
  std::size_t length = sizeof(GreHeader) + 4;  // payload length and call identifier stand for the key
  if ((flags & GreHeader::kSequence) != 0) length += 4;
  if ((flags & kAcknowledgment) != 0) length += 4;
  if (length > bytes.size()) return wrong(decode_event("gre.version1_hdr_too_big"));
  return length;
}

/// RFC 4380 §5.1.1: origin indications, then an IPv6 packet that fills the rest.
bool decode_teredo(PacketDecoding& decoding) noexcept {
  constexpr std::size_t kOrigin = 8;
  Bytes bytes = decoding.packet.payload;
  while (bytes.size() >= sizeof(Ipv6Header) && bytes[0] == 0) {
    if (bytes[1] != 0 || bytes.size() < kOrigin + sizeof(Ipv6Header)) return false;
    bytes = bytes.subspan(kOrigin);
  }
  if (bytes.size() < sizeof(Ipv6Header) || bytes[0] >> 4 != 6) return false;
  if (bytes.size() != sizeof(Ipv6Header) + header_of<Ipv6Header>(bytes).payload_length.value()) return false;
  decoding.carried = {Carried::Layer::teredo, bytes};
  return true;
}

/// RFC 7348 §5. Reserved bits must be 0: other protocols use the port too.
void decode_vxlan(PacketDecoding& decoding) noexcept {
  const Bytes bytes = decoding.packet.payload;
  if (bytes.size() < sizeof(VxlanHeader) + sizeof(EthernetHeader) || !decoding.enter_layer()) return;
  if (be32(bytes, 0) != std::uint32_t{VxlanHeader::kVniPresent} << 24 || bytes[7] != 0) return;
  const Bytes inner = bytes.subspan(sizeof(VxlanHeader) + sizeof(EthernetHeader));
  switch (header_of<EthernetHeader>(bytes.subspan(sizeof(VxlanHeader))).type.value()) {
    case ether_type::kIpv4: decoding.carried = {Carried::Layer::ipv4, inner}; break;
    case ether_type::kIpv6: decoding.carried = {Carried::Layer::ipv6, inner}; break;
    case ether_type::kVlan:
    case ether_type::kQinQ:
    case ether_type::kQinQLegacy: decoding.carried = {Carried::Layer::vlan, inner}; break;
    case ether_type::kArp: break;
    default: decoding.wrong(decode_event("vxlan.unknown_payload_type")); break;
  }
}

/// RFC 8926 §3.4, §3.5: whether the options fill what the header says they take.
bool options_fill(Bytes options) noexcept {
  constexpr std::size_t kOption = 4;
  while (!options.empty()) {
    const std::size_t length = kOption + (options[3] & 0x1fU) * 4;
    if (length > options.size()) return false;
    options = options.subspan(length);
  }
  return true;
}

void decode_geneve(PacketDecoding& decoding) noexcept {
  constexpr std::size_t kHeader = 8;
  const Bytes bytes = decoding.packet.payload;
  if (bytes.size() < kHeader || !decoding.enter_layer()) return;
  const std::size_t length = kHeader + (bytes[0] & 0x3fU) * 4;
  const bool reserved = (bytes[1] & 0x3f) != 0 || bytes[7] != 0;
  if (bytes.size() < length || bytes[0] >> 6 != 0 || reserved ||
      !options_fill(bytes.subspan(kHeader, length - kHeader))) {
    return;
  }
  const Bytes inner = bytes.subspan(length);
  switch (be16(bytes, 2)) {
    case ether_type::kIpv4: decoding.carried = {Carried::Layer::ipv4, inner}; break;
    case ether_type::kIpv6: decoding.carried = {Carried::Layer::ipv6, inner}; break;
    case kBridge: decoding.carried = {Carried::Layer::ethernet, inner}; break;
    case ether_type::kArp: break;
    default: decoding.wrong(decode_event("geneve.unknown_payload_type")); break;
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
    case kNsh: decoding.carried = {Layer::nsh, inner}; break;
    case kPpp:
      if (version == 0 || be16(bytes, 4) != 0) decoding.carried = {Layer::ppp, inner};
      break;
    case kErspan:  // type I has no sequence number, and no header of its own
      decoding.carried = {(flags & GreHeader::kSequence) != 0 ? Layer::erspan : Layer::ethernet, inner};
      break;
    default: break;
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
  if ((source == kTeredoPort || destination == kTeredoPort) && decode_teredo(decoding)) return;
  if (source == kGenevePort || destination == kGenevePort) {
    decode_geneve(decoding);
  } else if (destination == VxlanHeader::kPort) {
    decode_vxlan(decoding);
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
    case Carried::Layer::teredo:  // what only looked like Teredo is none
      return decode_ipv6(decoding, carried.bytes) && !decoding.packet.invalid;
  }
  return false;
}

}  // namespace penstock::stack
