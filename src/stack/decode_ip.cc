// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// IPv4 with its options, IPv6 with its extension headers.

#include <algorithm>
#include <bitset>
#include <cstddef>

#include "packet/checksum.h"
#include "packet/ip.h"
#include "stack/packet_decoding.h"

namespace penstock::stack {

namespace {

constexpr std::size_t kMostIpBytes = 0xffff;

namespace ipv4_option {
constexpr std::uint8_t kEnd = 0, kNop = 1, kRecordRoute = 7, kQuickStart = 25, kTimestamp = 68, kSecurity = 130,
                       kLooseRoute = 131, kExtendedSecurity = 133, kCipso = 134, kStreamId = 136, kStrictRoute = 137,
                       kRouterAlert = 148;
}

/// RFC 791: type, length, pointer (from 1) to the next of the addresses that follow.
bool decode_route_option(PacketDecoding& decoding, Bytes option) noexcept {
  if (option.size() < 3) return decoding.wrong(decode_event("ipv4.opt_invalid_len"));
  const unsigned pointer = option[2];
  if (pointer < 4 || pointer % 4 != 0 || pointer > option.size() + 1) {
    return decoding.wrong(decode_event("ipv4.opt_malformed"));
  }
  return true;
}

/// RFC 791: type, length, pointer, overflow and flag, records of 4 or 8 bytes.
bool decode_timestamp_option(PacketDecoding& decoding, Bytes option) noexcept {
  if (option.size() < 5) return decoding.wrong(decode_event("ipv4.opt_invalid_len"));
  const unsigned pointer = option[2];
  if (pointer < 5) return decoding.wrong(decode_event("ipv4.opt_malformed"));
  // Suricata reads the byte after the flag byte. If it does not exist, there are no records.
  const unsigned flag = option.size() > 5 ? option[5] : 0;
  const unsigned record = flag == 1 || flag == 3 ? 8 : 4;
  if ((pointer - 5) % record != 0 || pointer > option.size() + 1) {
    return decoding.wrong(decode_event("ipv4.opt_malformed"));
  }
  return true;
}

/// FIPS 188: type, length, domain of interpretation, tags of a type, a length and, but for type 7, an alignment byte.
bool decode_cipso_option(PacketDecoding& decoding, Bytes option) noexcept {
  constexpr std::size_t kLeast = 10, kBeforeTags = 6;
  if (option.size() < kLeast) return decoding.wrong(decode_event("ipv4.opt_invalid_len"));
  for (Bytes tags = option.subspan(kBeforeTags); !tags.empty();) {
    if (tags.size() < 2 || tags[1] > tags.size()) return decoding.wrong(decode_event("ipv4.opt_malformed"));
    const std::uint8_t type = tags[0];
    const std::size_t length = tags[1];
    const bool known = type == 1 || type == 2 || type == 5 || type == 6 || type == 7;
    if (!known || length < 4 || (type != 7 && tags[2] != 0)) {
      return decoding.wrong(decode_event("ipv4.opt_malformed"));
    }
    tags = tags.subspan(length);
  }
  return true;
}

bool decode_option_of_length(PacketDecoding& decoding, bool right) noexcept {
  return right || decoding.wrong(decode_event("ipv4.opt_invalid_len"));
}

constexpr bool is_known(std::uint8_t option) noexcept {
  using namespace ipv4_option;
  return option == kTimestamp || option == kRecordRoute || option == kLooseRoute || option == kStrictRoute ||
         option == kCipso || option == kQuickStart || option == kSecurity || option == kStreamId ||
         option == kRouterAlert || option == kExtendedSecurity;
}

/// Decodes a known, complete option. False if the options after it must not be decoded.
bool decode_ipv4_option(PacketDecoding& decoding, Bytes option) noexcept {
  using namespace ipv4_option;
  switch (option[0]) {
    case kTimestamp: return decode_timestamp_option(decoding, option);
    case kRecordRoute:
    case kLooseRoute:
    case kStrictRoute: return decode_route_option(decoding, option);
    case kCipso: return decode_cipso_option(decoding, option);
    case kQuickStart: return decode_option_of_length(decoding, option.size() >= 8);
    case kSecurity: return decode_option_of_length(decoding, option.size() == 11);
    case kExtendedSecurity: return decode_option_of_length(decoding, option.size() >= 3);
    default: return decode_option_of_length(decoding, option.size() == 4);  // stream identifier, router alert
  }
}

void decode_ipv4_options(PacketDecoding& decoding, Bytes options) noexcept {
  if (options.size() % 8 != 0) decoding.note(decode_event("ipv4.opt_pad_required"));
  std::bitset<256> seen;
  while (!options.empty() && options[0] != ipv4_option::kEnd) {
    if (options[0] == ipv4_option::kNop) {
      options = options.subspan(1);
      continue;
    }
    if (options.size() < 2) {
      decoding.note(decode_event("ipv4.opt_eol_required"));
      return;
    }
    const std::size_t length = options[1];
    if (length < 2 || length > options.size()) {
      decoding.wrong(decode_event("ipv4.opt_invalid_len"));
      return;
    }
    const std::uint8_t type = options[0];
    if (!is_known(type)) {
      decoding.note(decode_event("ipv4.opt_invalid"));
    } else if (seen[type]) {
      decoding.note(decode_event("ipv4.opt_duplicate"));
    } else if (!decode_ipv4_option(decoding, options.first(length))) {
      return;
    }
    seen.set(type);
    options = options.subspan(length);
  }
}

}  // namespace

bool decode_ipv4(PacketDecoding& decoding, Bytes bytes) noexcept {
  DecodedPacket& packet = decoding.packet;
  if (!decoding.enter_layer()) return false;
  bytes = bytes.first(std::min(bytes.size(), kMostIpBytes));
  if (bytes.size() < sizeof(Ipv4Header)) return decoding.wrong(decode_event("ipv4.pkt_too_small"));
  const auto& ip = header_of<Ipv4Header>(bytes);
  if (ip.version() != 4) return decoding.wrong(decode_event("ipv4.wrong_ip_version"));
  const std::size_t header_length = ip.header_length();
  const std::size_t total_length = ip.total_length.value();
  if (header_length < sizeof(Ipv4Header)) return decoding.wrong(decode_event("ipv4.hlen_too_small"));
  if (total_length < header_length) return decoding.wrong(decode_event("ipv4.iplen_smaller_than_hlen"));
  if (bytes.size() < total_length) {
    packet.truncated = true;
    return decoding.wrong(decode_event("ipv4.trunc_pkt"));
  }

  packet.ip_version = 4;
  packet.protocol = ip.protocol;
  packet.source.address = {0, ip.source.value()};
  packet.destination.address = {0, ip.destination.value()};
  packet.ip = bytes.first(header_length);
  packet.ip_payload = bytes.subspan(header_length, total_length - header_length);
  if (checksum(packet.ip.data(), static_cast<std::uint32_t>(header_length)) != 0) packet.wrong_ip_checksum = true;
  if (header_length > sizeof(Ipv4Header)) decode_ipv4_options(decoding, packet.ip.subspan(sizeof(Ipv4Header)));

  const std::uint16_t fragment = ip.fragment.value();
  if ((fragment & (Ipv4Header::kMoreFragments | Ipv4Header::kOffsetMask)) != 0) {
    packet.fragment = true;
    decoding.is_fragment = true;
    decoding.fragment = {.id = ip.id.value(),
                         .offset = (fragment & Ipv4Header::kOffsetMask) * 8U,
                         .more = (fragment & Ipv4Header::kMoreFragments) != 0,
                         .header = packet.ip,
                         .data = packet.ip_payload};
    return true;
  }
  switch (ip.protocol) {
    case ip_protocol::kTcp: decode_tcp(decoding, packet.ip_payload); break;
    case ip_protocol::kUdp: decode_udp(decoding, packet.ip_payload); break;
    case ip_protocol::kIcmp: decode_icmpv4(decoding, packet.ip_payload); break;
    case ip_protocol::kGre: decode_gre(decoding, packet.ip_payload); break;
    case ip_protocol::kSctp: decode_sctp(decoding, packet.ip_payload); break;
    case ip_protocol::kEsp: decode_esp(decoding, packet.ip_payload); break;
    case ip_protocol::kIpv4:
      decoding.carried = {Carried::Layer::ipv4, packet.ip_payload};
      packet.has_flow = true;
      break;
    case ip_protocol::kIpv6:
      decoding.carried = {Carried::Layer::ipv6, packet.ip_payload};
      packet.has_flow = true;
      break;
    case 0:
      if (decoding.vj_uncompressed) decode_tcp(decoding, packet.ip_payload);
      break;
    case ip_protocol::kIcmpv6: decoding.wrong(decode_event("ipv4.icmpv6")); break;
    default: break;
  }
  return true;
}

namespace {

/// Decodes hop-by-hop or destination options. Sets events for unknown options and for headers with only padding.
void decode_ipv6_options(PacketDecoding& decoding, Bytes options, bool hop_by_hop) noexcept {
  constexpr std::uint8_t kPad1 = 0, kPadN = 1, kRouterAlert = 5, kJumbo = 0xc2, kHomeAddress = 0xc9;
  const DecodeEvent unknown =
      hop_by_hop ? decode_event("ipv6.hopopts_unknown_opt") : decode_event("ipv6.dstopts_unknown_opt");
  bool padding = false, other = false;
  while (!options.empty()) {
    if (options[0] == kPad1) {
      padding = true;
      options = options.subspan(1);
      continue;
    }
    const std::size_t length = options.size() < 2 ? 0 : options[1];
    // Suricata allows the last option to be one byte too long and never reads that byte.
    if (options.size() < 2 || 1 + length > options.size()) {
      decoding.wrong(decode_event("ipv6.exthdr_invalid_optlen"));
      break;
    }
    const std::uint8_t type = options[0];
    const std::size_t least = type == kRouterAlert ? 2 : type == kJumbo ? 4 : type == kHomeAddress ? 16 : 0;
    if (length < least) {
      decoding.wrong(decode_event("ipv6.exthdr_invalid_optlen"));
      break;
    }
    if (type == kPadN) {
      padding = true;
      if (length == 0) decoding.note(decode_event("ipv6.zero_len_padn"));
    } else if (type != kJumbo) {
      other = true;
      if (least == 0) decoding.note(unknown);
    }
    options = options.subspan(std::min(options.size(), 2 + length));
  }
  if (padding && !other) {
    decoding.note(hop_by_hop ? decode_event("ipv6.hopopts_only_padding") : decode_event("ipv6.dstopts_only_padding"));
  }
}

/// The walk over a packet's extension headers.
class ExtensionHeaders {
 public:
  ExtensionHeaders(PacketDecoding& decoding, std::uint8_t next) noexcept
      : decoding_(decoding), all_(decoding.packet.ip_payload), next_(next) {}

  void walk() noexcept {
    while (step()) {
    }
    DecodedPacket& packet = decoding_.packet;
    packet.ip = {packet.ip.data(), sizeof(Ipv6Header) + at_};
    packet.ip_payload = all_.subspan(at_);
  }

 private:
  /// False after the last header.
  bool step() noexcept {
    const Bytes rest = all_.subspan(at_);
    if (next_ == ip_protocol::kNone) {
      if (!rest.empty()) decoding_.note(decode_event("ipv6.data_after_none_header"));
      return false;
    }
    if (rest.size() < sizeof(Ipv6Extension)) return decoding_.wrong(decode_event("ipv6.trunc_exthdr"));
    DecodedPacket& packet = decoding_.packet;
    switch (next_) {
      case ip_protocol::kMobility:
      case ip_protocol::kHip:
      case ip_protocol::kShim6: return skip(8 + rest[1] * 8U);
      case ip_protocol::kIcmp: decoding_.note(decode_event("ipv6.icmpv4")); return false;
      default: packet.protocol = next_; break;
    }
    switch (next_) {
      case ip_protocol::kTcp: decode_tcp(decoding_, rest); return false;
      case ip_protocol::kUdp: decode_udp(decoding_, rest); return false;
      case ip_protocol::kIcmpv6: decode_icmpv6(decoding_, rest); return false;
      case ip_protocol::kSctp: decode_sctp(decoding_, rest); return false;
      case ip_protocol::kEsp: decode_esp(decoding_, rest); return false;
      case ip_protocol::kIpv4: decode_ipv4_inside(decoding_, rest); return false;
      case ip_protocol::kIpv6: decode_ipv6_inside(decoding_, rest); return false;  // RFC 2473: after an option
      case ip_protocol::kGre: decode_gre(decoding_, rest); return false;
      case ip_protocol::kRouting: return routing(rest);
      case ip_protocol::kHopByHop:
      case ip_protocol::kDestinationOptions: return options(rest);
      case ip_protocol::kFragment: return fragment(rest);
      case ip_protocol::kAh: return authentication(rest);
      default: decoding_.note(decode_event("ipv6.unknown_next_header")); return false;
    }
  }

  bool skip(std::size_t length) noexcept {
    if (length > all_.size() - at_) return decoding_.wrong(decode_event("ipv6.trunc_exthdr"));
    next_ = all_[at_];
    next_at_ = sizeof(Ipv6Header) + at_;
    at_ += length;
    return true;
  }

  bool routing(Bytes rest) noexcept {
    const std::size_t at = at_;
    if (!skip(8 + rest[1] * 8U)) return false;
    if (routing_++ != 0) {
      decoding_.note(decode_event("ipv6.exthdr_dupl_rh"));
    } else if (all_[at + 2] == 0) {
      decoding_.note(decode_event("ipv6.rh_type_0"));
    }
    return true;
  }

  bool options(Bytes rest) noexcept {
    const bool hop_by_hop = next_ == ip_protocol::kHopByHop;
    const std::size_t length = 8 + rest[1] * 8U;
    if (!skip(length)) return false;
    const unsigned allowed = hop_by_hop ? 1 : 2;  // RFC 8200 §4.1: destination options before and after routing
    unsigned& seen = hop_by_hop ? hop_by_hop_ : destination_;
    if (seen == allowed) {
      decoding_.note(hop_by_hop ? decode_event("ipv6.exthdr_dupl_hh") : decode_event("ipv6.exthdr_dupl_dh"));
      return true;
    }
    ++seen;
    decode_ipv6_options(decoding_, rest.subspan(2, length - 2), hop_by_hop);
    return true;
  }

  bool fragment(Bytes rest) noexcept {
    if (rest.size() < sizeof(Ipv6FragmentHeader)) return decoding_.wrong(decode_event("ipv6.trunc_exthdr"));
    const auto& header = header_of<Ipv6FragmentHeader>(rest);
    if (header.reserved != 0) decoding_.note(decode_event("ipv6.fh_non_zero_reserved_field"));
    if (fragment_++ != 0) {
      decoding_.note(decode_event("ipv6.exthdr_dupl_fh"));
      return skip(sizeof(Ipv6FragmentHeader));
    }
    const std::uint16_t word = header.fragment.value();
    const bool more = (word & Ipv6FragmentHeader::kMoreFragments) != 0;
    const std::uint32_t offset = word & Ipv6FragmentHeader::kOffsetMask;
    if (!more && offset == 0) {  // "atomic" (RFC 6946): a whole packet
      decoding_.note(decode_event("ipv6.exthdr_useless_fh"));
      return skip(sizeof(Ipv6FragmentHeader));
    }
    if (more && rest.size() % 8 != 0) decoding_.note(decode_event("ipv6.frag_invalid_length"));
    DecodedPacket& packet = decoding_.packet;
    packet.fragment = true;
    decoding_.is_fragment = true;
    decoding_.fragment = {.id = header.id.value(),
                          .offset = offset,
                          .more = more,
                          .next_header = header.next_header,
                          .next_header_at = next_at_,
                          .header = {packet.ip.data(), sizeof(Ipv6Header) + at_},
                          .data = rest.subspan(sizeof(Ipv6FragmentHeader))};
    return false;
  }

  bool authentication(Bytes rest) noexcept {
    constexpr std::size_t kLeast = 12;  // RFC 4302 §2, up to the sequence number
    const std::size_t length = rest[1] > 0 ? kLeast + (rest[1] - 1U) * 4 : kLeast;
    if (!skip(length)) return false;
    if (be16(rest, 2) != 0) decoding_.note(decode_event("ipv6.exthdr_ah_res_not_null"));
    if (authentication_++ != 0) decoding_.note(decode_event("ipv6.exthdr_dupl_ah"));
    return true;
  }

 public:
  static void decode_ipv4_inside(PacketDecoding& decoding, Bytes bytes) noexcept {
    if (bytes.size() < sizeof(Ipv4Header)) {
      decoding.wrong(decode_event("ipv6.ipv4_in_ipv6_too_small"));
    } else if (bytes[0] >> 4 != 4) {
      decoding.wrong(decode_event("ipv6.ipv4_in_ipv6_wrong_version"));
    } else {
      decoding.carried = {Carried::Layer::ipv4, bytes};
      decoding.packet.has_flow = true;
    }
  }
  static void decode_ipv6_inside(PacketDecoding& decoding, Bytes bytes) noexcept {
    if (bytes.size() < sizeof(Ipv6Header)) {
      decoding.wrong(decode_event("ipv6.ipv6_in_ipv6_too_small"));
    } else if (bytes[0] >> 4 != 6) {
      decoding.wrong(decode_event("ipv6.ipv6_in_ipv6_wrong_version"));
    } else {
      decoding.carried = {Carried::Layer::ipv6, bytes};
      decoding.packet.has_flow = true;
    }
  }

 private:
  PacketDecoding& decoding_;
  Bytes all_;
  std::uint8_t next_;
  std::size_t at_ = 0;                                       // of the header that `next_` names
  std::size_t next_at_ = offsetof(Ipv6Header, next_header);  // where in the packet that Next Header field is
  unsigned hop_by_hop_ = 0, destination_ = 0, routing_ = 0, fragment_ = 0, authentication_ = 0;  // seen so far
};

}  // namespace

bool decode_ipv6(PacketDecoding& decoding, Bytes bytes) noexcept {
  DecodedPacket& packet = decoding.packet;
  if (!decoding.enter_layer()) return false;
  if (bytes.size() < sizeof(Ipv6Header)) return decoding.wrong(decode_event("ipv6.pkt_too_small"));
  if (bytes[0] >> 4 != 6) return decoding.wrong(decode_event("ipv6.wrong_ip_version"));
  const auto& ip = header_of<Ipv6Header>(bytes);
  const std::size_t length = ip.payload_length.value();
  if (bytes.size() - sizeof(Ipv6Header) < length) {
    packet.truncated = true;
    return decoding.wrong(decode_event("ipv6.trunc_pkt"));
  }

  packet.ip_version = 6;
  packet.protocol = ip.next_header;
  packet.source.address = ip.source_address();
  packet.destination.address = ip.destination_address();
  packet.ip = bytes.first(sizeof(Ipv6Header));
  packet.ip_payload = bytes.subspan(sizeof(Ipv6Header), length);
  switch (ip.next_header) {
    case ip_protocol::kTcp: decode_tcp(decoding, packet.ip_payload); break;
    case ip_protocol::kUdp: decode_udp(decoding, packet.ip_payload); break;
    case ip_protocol::kIcmpv6: decode_icmpv6(decoding, packet.ip_payload); break;
    case ip_protocol::kSctp: decode_sctp(decoding, packet.ip_payload); break;
    case ip_protocol::kIpv4: ExtensionHeaders::decode_ipv4_inside(decoding, packet.ip_payload); break;
    case ip_protocol::kIpv6: ExtensionHeaders::decode_ipv6_inside(decoding, packet.ip_payload); break;
    case ip_protocol::kGre: decode_gre(decoding, packet.ip_payload); break;
    case ip_protocol::kFragment:
    case ip_protocol::kHopByHop:
    case ip_protocol::kRouting:
    case ip_protocol::kNone:
    case ip_protocol::kDestinationOptions:
    case ip_protocol::kAh:
    case ip_protocol::kEsp:
    case ip_protocol::kMobility:
    case ip_protocol::kHip:
    case ip_protocol::kShim6: ExtensionHeaders(decoding, ip.next_header).walk(); break;
    case ip_protocol::kIcmp: decoding.note(decode_event("ipv6.icmpv4")); break;
    default: decoding.note(decode_event("ipv6.unknown_next_header")); break;
  }
  return true;
}

}  // namespace penstock::stack
