// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Link layers, and the encapsulations between them and IP.

#include <algorithm>
#include <array>

#include "packet/ethernet.h"
#include "packet/ip.h"
#include "packet/parse_core.h"
#include "stack/packet_decoding.h"

namespace penstock::stack {

namespace {

// Raw IP: decode_ipv4() and decode_ipv6() check the header again.
bool decode_raw_ip(PacketDecoding& decoding, Bytes bytes) noexcept {
  if (bytes.size() < sizeof(Ipv4Header)) return decoding.wrong(decode_event("ipv4.pkt_too_small"));
  switch (bytes[0] >> 4) {
    case 4: return decode_ipv4(decoding, bytes);
    case 6: return decode_ipv6(decoding, bytes);
    default: decoding.note(decode_event("ipraw.invalid_ip_version")); return true;
  }
}

bool decode_family(PacketDecoding& decoding, Bytes bytes, bool network_order) noexcept {
  if (bytes.size() < 4) return decoding.wrong(decode_event("ltnull.pkt_too_small"));
  if (!decoding.enter_layer()) return false;
  const std::uint32_t big = be32(bytes, 0);
  const std::uint32_t little = __builtin_bswap32(big);
  // DLT_NULL uses the byte order of the capturing host, which the file does not always record. Address families are
  // small numbers, so the value itself shows the order.
  const std::uint16_t type =
      parse_detail::ether_type_of_family(network_order || (big & 0xffff0000) == 0 ? big : little);
  if (type == 0) {
    decoding.note(decode_event("ltnull.unsupported_type"));
    return true;
  }
  return type == ether_type::kIpv4 ? decode_ipv4(decoding, bytes.subspan(4)) : decode_ipv6(decoding, bytes.subspan(4));
}

/// Decodes a header of fixed length that contains an EtherType.
bool decode_fixed(PacketDecoding& decoding, Bytes bytes, std::size_t length, std::size_t type_at,
                  DecodeEvent too_small) noexcept {
  if (bytes.size() < length) return decoding.wrong(too_small);
  if (!decoding.enter_layer()) return false;
  decode_ether_type(decoding, be16(bytes, type_at), bytes.subspan(length));
  return true;
}

/// The same for a tag in an Ethernet frame, which a known EtherType must follow.
bool decode_tag(PacketDecoding& decoding, Bytes bytes, std::size_t length, DecodeEvent too_small,
                DecodeEvent unknown) noexcept {
  if (bytes.size() < length) return decoding.wrong(too_small);
  if (!decoding.enter_layer()) return false;
  return decode_ether_type(decoding, be16(bytes, length - 2), bytes.subspan(length)) || decoding.wrong(unknown);
}

bool decode_mpls(PacketDecoding& decoding, Bytes bytes) noexcept;

bool decode_ppp_protocol(PacketDecoding& decoding, std::uint16_t protocol, Bytes bytes) noexcept {
  // Protocols that Suricata only knows by name: those that never carry IP, ...
  static constexpr auto kOthers =
      std::to_array<std::uint16_t>({0x0023, 0x0025, 0x0027, 0x0029, 0x002b, 0x0033, 0x0035, 0x0201, 0x0231, 0x0233,
                                    0x8023, 0x8025, 0x8027, 0x8029, 0x802b, 0x8033, 0x8035, 0x8281});
  // ... those that may carry IP (Van Jacobson compressed TCP, bridged frames), ...
  static constexpr auto kCarriers = std::to_array<std::uint16_t>({0x002d, 0x0031});
  // ... and link control protocols.
  static constexpr auto kControl =
      std::to_array<std::uint16_t>({0x00fd, 0x8021, 0x8057, 0x80fd, 0x8207, 0xc021, 0xc023, 0xc025, 0xc029, 0xc223});
  switch (protocol) {
    case 0x002f:  // Van Jacobson uncompressed (RFC 1144): IP with a connection number as protocol
      if (bytes.size() < sizeof(Ipv4Header)) return decoding.wrong(decode_event("ppp.vju_pkt_too_small"));
      decoding.vj_uncompressed = true;
      return bytes[0] >> 4 == 4 && decode_ipv4(decoding, bytes);
    case 0x0021:
      if (bytes.size() < sizeof(Ipv4Header)) return decoding.wrong(decode_event("ppp.ip4_pkt_too_small"));
      return decode_ipv4(decoding, bytes);
    case 0x0057:
      if (bytes.size() < sizeof(Ipv6Header)) return decoding.wrong(decode_event("ppp.ip6_pkt_too_small"));
      return decode_ipv6(decoding, bytes);
    case 0x0281:  // RFC 3032 §4
    case 0x0283: return decode_mpls(decoding, bytes);
    default: break;
  }
  const auto is_of = [protocol](const auto& protocols) {
    return std::ranges::find(protocols, protocol) != protocols.end();
  };
  decoding.is_not_ip = is_of(kOthers) || is_of(kControl);
  if (is_of(kOthers) || is_of(kCarriers)) {
    decoding.note(decode_event("ppp.unsup_proto"));
  } else if (!decoding.is_not_ip) {
    decoding.wrong(decode_event("ppp.wrong_type"));
  }
  return true;
}

/// RFC 1661 §6.5: the first byte of the protocol may be omitted if it is 0. The second byte is odd.
bool decode_ppp_frame(PacketDecoding& decoding, Bytes bytes, DecodeEvent too_small) noexcept {
  const std::size_t width = !bytes.empty() && (bytes[0] & 1) != 0 ? 1 : 2;
  if (bytes.size() < width) return decoding.wrong(too_small);
  if (!decoding.enter_layer()) return false;
  return decode_ppp_protocol(decoding, width == 1 ? bytes[0] : be16(bytes, 0), bytes.subspan(width));
}

constexpr std::size_t kPppoeHeader = 6;  // RFC 2516 §4: version and type, code, session, length

bool decode_pppoe_session(PacketDecoding& decoding, Bytes bytes) noexcept {
  if (bytes.size() <= kPppoeHeader) return decoding.wrong(decode_event("pppoe.pkt_too_small"));
  if (!decoding.enter_layer()) return false;
  if (be16(bytes, 4) == 0) return true;
  return decode_ppp_frame(decoding, bytes.subspan(kPppoeHeader), decode_event("ppp.pkt_too_small"));
}

bool decode_pppoe_discovery(PacketDecoding& decoding, Bytes bytes) noexcept {
  decoding.is_not_ip = true;
  if (bytes.size() < kPppoeHeader) return decoding.wrong(decode_event("pppoe.pkt_too_small"));
  if (!decoding.enter_layer()) return false;
  switch (bytes[1]) {
    case 0x09:  // PADI, PADO, PADR, PADS, PADT
    case 0x07:
    case 0x19:
    case 0x65:
    case 0xa7: break;
    default: decoding.wrong(decode_event("pppoe.wrong_code")); return true;
  }
  if (be16(bytes, 4) > bytes.size() - kPppoeHeader) decoding.wrong(decode_event("pppoe.malformed_tags"));
  return true;
}

/// RFC 3032. The labels do not say what follows them, so guess it from the first nibble.
bool decode_mpls(PacketDecoding& decoding, Bytes bytes) noexcept {
  constexpr std::size_t kLabel = 4;
  constexpr std::uint32_t kIpv4 = 0, kRouterAlert = 1, kIpv6 = 2, kImplicitNull = 3, kMostReserved = 15;
  if (!decoding.enter_layer()) return false;
  std::uint32_t entry = 0;
  do {
    if (bytes.size() < kLabel) return decoding.wrong(decode_event("mpls.header_too_small"));
    entry = be32(bytes, 0);
    bytes = bytes.subspan(kLabel);
  } while ((entry & 0x100) == 0);
  const std::uint32_t label = entry >> 12;
  switch (label) {
    case kIpv4: return decode_ipv4(decoding, bytes);
    case kIpv6: return decode_ipv6(decoding, bytes);
    case kRouterAlert: decoding.note(decode_event("mpls.bad_label_router_alert")); return true;
    case kImplicitNull: decoding.note(decode_event("mpls.bad_label_implicit_null")); return true;
    default: break;
  }
  if (label < kMostReserved) {
    decoding.note(decode_event("mpls.bad_label_reserved"));
    return true;
  }
  if (bytes.size() < kLabel) return decoding.wrong(decode_event("mpls.pkt_too_small"));
  switch (bytes[0] >> 4) {
    case 4: decode_ipv4(decoding, bytes); break;
    case 6: decode_ipv6(decoding, bytes); break;
    case 0: decode_ethernet(decoding, bytes.subspan(kLabel)); break;  // after a pseudowire control word
    default: decoding.wrong(decode_event("mpls.unknown_payload_type")); break;
  }
  return true;
}

/// IEEE 802.2 LLC instead of an EtherType. Suricata does not decode it.
bool decode_llc(PacketDecoding& decoding, Bytes bytes) noexcept {
  if (bytes.size() >= sizeof(SnapHeader)) {
    const auto& snap = header_of<SnapHeader>(bytes);
    const std::uint16_t type = snap.type.value();
    const bool is_known = type == ether_type::kIpv4 || type == ether_type::kIpv6 || type == ether_type::kArp ||
                          type == ether_type::kVlan || is_encapsulation(type);
    if (snap.names_ether_type() && is_known) {
      return decoding.enter_layer() && decode_ether_type(decoding, type, bytes.subspan(sizeof(SnapHeader)));
    }
  }
  decoding.is_not_ip = llc_carries_no_ip(bytes);
  decoding.note(decode_event("ethernet.unknown_ethertype"));
  return false;
}

}  // namespace

bool is_encapsulation(std::uint16_t type) noexcept {
  switch (type) {
    case ether_type::kPppoeSession:
    case ether_type::kMpls:
    case ether_type::kMplsMulticast:
    case ether_type::kNsh:
    case ether_type::kIeee8021ah:
    case ether_type::kVntag:
    case ether_type::kEtag:
    case ether_type::kDce: return true;
    default: return type < ether_type::kLeast;
  }
}

bool decode_ether_type(PacketDecoding& decoding, std::uint16_t type, Bytes bytes) noexcept {
  if (type < ether_type::kLeast) return decode_llc(decoding, bytes);
  switch (type) {
    case ether_type::kIpv4: decode_ipv4(decoding, bytes); break;
    case ether_type::kIpv6: decode_ipv6(decoding, bytes); break;
    case ether_type::kVlan:
    case ether_type::kQinQ:
    case ether_type::kQinQLegacy: decode_vlan(decoding, bytes); break;
    case ether_type::kArp: decode_arp(decoding, bytes); break;
    case ether_type::kPppoeSession: decode_pppoe_session(decoding, bytes); break;
    case ether_type::kPppoeDiscovery: decode_pppoe_discovery(decoding, bytes); break;
    case ether_type::kMpls:
    case ether_type::kMplsMulticast: decode_mpls(decoding, bytes); break;
    case ether_type::kNsh: decode_nsh(decoding, bytes); break;
    case ether_type::kIeee8021ah:  // flags and service ID, then the customer's Ethernet header
      decode_fixed(decoding, bytes, 18, 16, decode_event("ieee8021ah.header_too_small"));
      break;
    case ether_type::kVntag:
      decode_tag(decoding, bytes, 6, decode_event("vntag.header_too_small"), decode_event("vntag.unknown_type"));
      break;
    case ether_type::kEtag:
      decode_tag(decoding, bytes, 8, decode_event("etag.header_too_small"), decode_event("etag.unknown_type"));
      break;
    case ether_type::kDce:  // Cisco FabricPath: two bytes, then an Ethernet header
      if (bytes.size() < 2 + sizeof(EthernetHeader)) {
        decoding.wrong(decode_event("dce.pkt_too_small"));
      } else {
        decode_ethernet(decoding, bytes.subspan(2));
      }
      break;
    default:
      decoding.is_not_ip = carries_no_ip(type);
      decoding.note(decode_event("ethernet.unknown_ethertype"));
      return false;
  }
  return true;
}

bool decode_ethernet(PacketDecoding& decoding, Bytes bytes) noexcept {
  return decode_fixed(decoding, bytes, sizeof(EthernetHeader), 12, decode_event("ethernet.pkt_too_small"));
}

bool decode_vlan(PacketDecoding& decoding, Bytes bytes) noexcept {
  DecodedPacket& packet = decoding.packet;
  if (bytes.size() < sizeof(VlanTag)) return decoding.wrong(decode_event("vlan.header_too_small"));
  if (!decoding.enter_layer()) return false;
  constexpr std::size_t kMostOfSuricata = 3;
  if (packet.vlan_count >= kMostOfSuricata) decoding.note(decode_event("vlan.too_many_layers"));
  if (packet.vlan_count == packet.vlan_ids.size()) return false;
  const auto& tag = header_of<VlanTag>(bytes);
  packet.vlan_ids[packet.vlan_count++] = tag.tci.value() & 0xfff;
  return decode_ether_type(decoding, tag.type.value(), bytes.subspan(sizeof(VlanTag))) ||
         decoding.wrong(decode_event("vlan.unknown_type"));
}

bool decode_arp(PacketDecoding& decoding, Bytes bytes) noexcept {
  constexpr std::size_t kBeforeAddresses = 8;
  decoding.is_not_ip = true;
  if (bytes.size() < kBeforeAddresses) return decoding.wrong(decode_event("arp.pkt_too_small"));
  if (!decoding.enter_layer()) return false;
  if (be16(bytes, 0) != 1) return decoding.wrong(decode_event("arp.unsupported_hardware"));
  if (be16(bytes, 2) != ether_type::kIpv4) return decoding.wrong(decode_event("arp.unsupported_protocol"));
  if (bytes.size() < sizeof(ArpHeader)) return decoding.wrong(decode_event("arp.unsupported_pkt"));
  if (bytes[4] != sizeof(MacAddress)) return decoding.wrong(decode_event("arp.invalid_hardware_size"));
  if (bytes[5] != sizeof(Be32)) return decoding.wrong(decode_event("arp.invalid_protocol_size"));
  return true;
}

bool decode_ppp(PacketDecoding& decoding, Bytes bytes) noexcept {
  const bool has_address = !bytes.empty() && bytes[0] == 0xff;  // RFC 1662: the control byte follows
  if (has_address && bytes.size() < 2) return decoding.wrong(decode_event("ppp.pkt_too_small"));
  return decode_ppp_frame(decoding, bytes.subspan(has_address ? 2 : 0), decode_event("ppp.pkt_too_small"));
}

/// RFC 8300 §2
bool decode_nsh(PacketDecoding& decoding, Bytes bytes) noexcept {
  constexpr std::size_t kLeast = 8, kFixedLength = 24;
  if (bytes.size() < kLeast) return decoding.wrong(decode_event("nsh.header_too_small"));
  if (!decoding.enter_layer()) return false;
  const std::uint16_t word = be16(bytes, 0);
  if (word >> 14 != 0) {
    decoding.note(decode_event("nsh.unsupported_version"));
    return true;
  }
  const std::size_t length = (word & 0x3fU) * 4;
  if (length >= bytes.size()) return decoding.wrong(decode_event("nsh.bad_header_length"));
  switch (bytes[2]) {  // metadata type; the upper bits are unassigned
    case 1:
      if (length != kFixedLength) return decoding.wrong(decode_event("nsh.bad_header_length"));
      break;
    case 2: break;
    case 0:
    case 0xf: decoding.note(decode_event("nsh.reserved_type")); return true;
    default: decoding.note(decode_event("nsh.unsupported_type")); return true;
  }
  const Bytes inner = bytes.subspan(length);
  switch (bytes[3]) {
    case 1: return decode_ipv4(decoding, inner);
    case 2: return decode_ipv6(decoding, inner);
    case 3: return decode_ethernet(decoding, inner);
    case 5: return decode_mpls(decoding, inner);
    default: decoding.note(decode_event("nsh.unknown_payload")); return true;
  }
}

bool decode_link(PacketDecoding& decoding, LinkType link, Bytes bytes) noexcept {
  switch (link) {
    case LinkType::ethernet: return decode_ethernet(decoding, bytes);
    case LinkType::raw_ip: return decode_raw_ip(decoding, bytes);
    case LinkType::null_host: return decode_family(decoding, bytes, false);
    case LinkType::loop: return decode_family(decoding, bytes, true);
    case LinkType::linux_sll:
      return decode_fixed(decoding, bytes, sizeof(LinuxSllHeader), 14, decode_event("sll.pkt_too_small"));
    case LinkType::linux_sll2:
      return decode_fixed(decoding, bytes, sizeof(LinuxSll2Header), 0, decode_event("sll2.pkt_too_small"));
    case LinkType::ppp: return decode_ppp(decoding, bytes);
    case LinkType::cisco_hdlc: return decode_fixed(decoding, bytes, 4, 2, decode_event("chdlc.pkt_too_small"));
  }
  return true;
}

}  // namespace penstock::stack
