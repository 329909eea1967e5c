// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// TCP, UDP, SCTP, ESP and ICMP. A packet with an invalid header keeps its protocol, but has neither transport header
// nor payload.

#include <algorithm>

#include "packet/ip.h"
#include "packet/transport.h"
#include "stack/packet_decoding.h"

namespace penstock::stack {

namespace {

namespace tcp_option {
constexpr std::uint8_t kEnd = 0, kNop = 1, kMss = 2, kWindowScale = 3, kSackPermitted = 4, kSack = 5, kTimestamp = 8,
                       kMd5 = 19, kAuthentication = 29, kFastOpen = 34, kExperiment1 = 253, kExperiment2 = 254;
}

void decode_tcp_options(PacketDecoding& decoding, Bytes options) noexcept {
  using namespace tcp_option;
  std::uint64_t seen = 0;  // by kind
  const auto once = [&](std::uint8_t kind, bool right_length) {
    if (!right_length) {
      decoding.note(decode_event("tcp.opt_invalid_len"));
    } else if ((seen >> kind & 1) != 0) {
      decoding.note(decode_event("tcp.opt_duplicate"));
    } else {
      seen |= std::uint64_t{1} << kind;
    }
  };
  while (!options.empty() && options[0] != kEnd) {
    const std::uint8_t kind = options[0];
    if (kind == kNop) {
      options = options.subspan(1);
      continue;
    }
    if (options.size() < 2) return;
    const std::size_t length = options[1];
    if (length < 2 || length > options.size()) {
      decoding.note(decode_event("tcp.opt_invalid_len"));
      return;
    }
    switch (kind) {
      case kMss: once(kind, length == 4); break;
      case kWindowScale: once(kind, length == 3); break;
      case kSackPermitted: once(kind, length == 2); break;
      case kTimestamp: once(kind, length == 10); break;
      case kSack: once(kind, length == 2 || (length >= 10 && length <= 34 && (length - 2) % 8 == 0)); break;
      case kFastOpen: once(kind, length == 2 || (length >= 4 && length <= 18 && length % 2 == 0)); break;
      case kExperiment1:
      case kExperiment2:
        if (length != 4 && length != 12) {
          decoding.note(decode_event("tcp.opt_invalid_len"));
        } else if (be16(options, 2) == 0xf989) {  // RFC 7413, appendix A
          once(kFastOpen, true);
        }
        break;
      case kMd5:
        if (length != 18) decoding.wrong(decode_event("tcp.opt_invalid_len"));
        break;
      case kAuthentication:
        if (length < 4) decoding.wrong(decode_event("tcp.opt_invalid_len"));
        break;
      default: break;
    }
    options = options.subspan(length);
  }
}

void set_ports(DecodedPacket& packet, Bytes bytes) noexcept {
  packet.source.port = be16(bytes, 0);
  packet.destination.port = be16(bytes, 2);
}

/// Sets a valid transport header and the payload after it.
void set_transport(DecodedPacket& packet, std::uint8_t protocol, Bytes bytes, std::size_t header_length) noexcept {
  packet.protocol = protocol;
  packet.transport = bytes.first(header_length);
  packet.payload = bytes.subspan(header_length);
  packet.has_flow = true;
}

/// Checks the packet quoted by an ICMP error, which must contain at least the IP header.
void check_quoted_ipv4(PacketDecoding& decoding, Bytes quoted) noexcept {
  if (quoted.size() < sizeof(Ipv4Header)) {
    decoding.wrong(decode_event("icmpv4.ipv4_trunc_pkt"));
  } else if (quoted[0] >> 4 != 4) {
    decoding.wrong(decode_event("icmpv4.ipv4_unknown_ver"));
  }
}
void check_quoted_ipv6(PacketDecoding& decoding, Bytes quoted) noexcept {
  if (quoted.size() < sizeof(Ipv6Header)) {
    decoding.wrong(decode_event("icmpv6.ipv6_trunc_pkt"));
  } else if (quoted[0] >> 4 != 6) {
    decoding.wrong(decode_event("icmpv6.ipv6_unknown_version"));
  }
}

}  // namespace

void decode_tcp(PacketDecoding& decoding, Bytes bytes) noexcept {
  if (bytes.size() < sizeof(TcpHeader)) {
    decoding.wrong(decode_event("tcp.pkt_too_small"));
    return;
  }
  const std::size_t length = header_of<TcpHeader>(bytes).header_length();
  if (bytes.size() < length) {
    decoding.wrong(decode_event("tcp.hlen_too_small"));
    return;
  }
  if (length < sizeof(TcpHeader)) {
    decoding.wrong(decode_event("tcp.invalid_optlen"));
    return;
  }
  if (length > sizeof(TcpHeader)) {
    decode_tcp_options(decoding, bytes.subspan(sizeof(TcpHeader), length - sizeof(TcpHeader)));
  }
  set_ports(decoding.packet, bytes);
  set_transport(decoding.packet, ip_protocol::kTcp, bytes, length);
}

void decode_udp(PacketDecoding& decoding, Bytes bytes) noexcept {
  if (bytes.size() < sizeof(UdpHeader)) {
    decoding.wrong(decode_event("udp.hlen_too_small"));
    return;
  }
  std::size_t length = header_of<UdpHeader>(bytes).length.value();
  // RFC 2675 §4: length 0 is for jumbograms, but hosts accept it in any packet.
  if (length == 0 && decoding.packet.ip_version == 6) {
    decoding.note(decode_event("udp.len_invalid"));
    length = bytes.size();
  }
  if (length > bytes.size()) {
    decoding.wrong(decode_event("udp.pkt_too_small"));
    return;
  }
  if (length < sizeof(UdpHeader)) {
    decoding.wrong(decode_event("udp.len_invalid"));
    return;
  }
  set_ports(decoding.packet, bytes);
  set_transport(decoding.packet, ip_protocol::kUdp, bytes.first(length), sizeof(UdpHeader));
  decode_udp_tunnel(decoding);
}

void decode_sctp(PacketDecoding& decoding, Bytes bytes) noexcept {
  if (bytes.size() < sizeof(SctpHeader)) {
    decoding.wrong(decode_event("sctp.pkt_too_small"));
    return;
  }
  set_ports(decoding.packet, bytes);
  set_transport(decoding.packet, ip_protocol::kSctp, bytes, sizeof(SctpHeader));
}

void decode_esp(PacketDecoding& decoding, Bytes bytes) noexcept {
  if (bytes.size() < sizeof(EspHeader)) {
    decoding.wrong(decode_event("esp.pkt_too_small"));
    return;
  }
  set_transport(decoding.packet, ip_protocol::kEsp, bytes, sizeof(EspHeader));
}

void decode_icmpv4(PacketDecoding& decoding, Bytes bytes) noexcept {
  enum : std::uint8_t {  // RFC 792, RFC 950, RFC 1256
    echo_reply = 0,
    unreachable = 3,
    source_quench = 4,
    redirect = 5,
    echo = 8,
    router_advertisement = 9,
    time_exceeded = 11,
    parameter_problem = 12,
    timestamp = 13,
    timestamp_reply = 14,
    information = 15,
    information_reply = 16,
    mask = 17,
    mask_reply = 18
  };
  constexpr std::size_t kTimestamps = 12;
  if (bytes.size() < sizeof(IcmpHeader)) {
    decoding.wrong(decode_event("icmpv4.pkt_too_small"));
    return;
  }
  DecodedPacket& packet = decoding.packet;
  set_transport(packet, ip_protocol::kIcmp, bytes, sizeof(IcmpHeader));
  const auto& header = header_of<IcmpHeader>(bytes);
  // Extends the header by the fields of its type.
  const auto extend = [&](std::size_t length) {
    if (length > packet.payload.size()) {
      decoding.note(decode_event("icmpv4.ipv4_trunc_pkt"));
    } else {
      packet.transport = bytes.first(sizeof(IcmpHeader) + length);
    }
  };
  const auto error = [&](unsigned highest_code) {
    if (header.code > highest_code) {
      decoding.note(decode_event("icmpv4.unknown_code"));
    } else if (!packet.payload.empty() || header.type == source_quench) {
      check_quoted_ipv4(decoding, packet.payload);
    }
  };
  switch (header.type) {
    case unreachable: error(15); return;
    case redirect: error(3); return;
    case time_exceeded: error(1); return;
    case source_quench:
    case parameter_problem: error(0); return;
    case router_advertisement: extend(std::size_t{bytes[4]} * bytes[5] * 4); return;  // count, words each
    case timestamp:
    case timestamp_reply: extend(kTimestamps); break;
    case echo:
    case echo_reply:
    case information:
    case information_reply:
    case mask:
    case mask_reply: break;
    default: decoding.note(decode_event("icmpv4.unknown_type")); return;
  }
  if (header.code != 0) decoding.note(decode_event("icmpv4.unknown_code"));
}

void decode_icmpv6(PacketDecoding& decoding, Bytes bytes) noexcept {
  enum : std::uint8_t {  // RFC 4443; IANA's registry
    unreachable = 1,
    packet_too_big = 2,
    time_exceeded = 3,
    parameter_problem = 4,
    echo = 128,
    echo_reply = 129,
    listener_query = 130,
    listener_done = 132,
    router_solicitation = 133,
    redirect = 137,
    router_renumbering = 138,
    node_query = 139,
    node_reply = 140,
    inverse_solicitation = 141,
    certification_path_advertisement = 149,
    experimental_mobility = 150,
    multicast_router_termination = 153,
    fast_handovers = 154,
    rpl_control = 155,
    ilnp_update = 156,
    mpl_control = 159
  };
  if (bytes.size() < sizeof(IcmpHeader)) {
    decoding.wrong(decode_event("icmpv6.pkt_too_small"));
    return;
  }
  DecodedPacket& packet = decoding.packet;
  set_transport(packet, ip_protocol::kIcmpv6, bytes, sizeof(IcmpHeader));
  const auto& header = header_of<IcmpHeader>(bytes);
  bool full_header = false;
  const auto error = [&](unsigned highest_code) {
    full_header = header.code <= highest_code;
    if (full_header) {
      check_quoted_ipv6(decoding, packet.payload);
    } else {
      decoding.note(decode_event("icmpv6.unknown_code"));
    }
  };
  const auto code = [&](bool known) {
    if (!known) decoding.note(decode_event("icmpv6.unknown_code"));
  };
  const std::uint8_t type = header.type;
  if (type == unreachable) {
    error(6);
  } else if (type == packet_too_big) {
    error(0);
  } else if (type == time_exceeded) {
    error(1);
  } else if (type == parameter_problem) {
    error(2);
  } else if (type == echo || type == echo_reply) {
    full_header = header.code == 0;
    code(full_header);
  } else if (type >= listener_query && type <= listener_done) {
    code(header.code == 0);
    // RFC 2710 §3: MLD messages never leave the link.
    if (header_of<Ipv6Header>(packet.ip).hop_limit != 1) {
      decoding.note(decode_event("icmpv6.mld_message_with_invalid_hl"));
    }
  } else if (type == router_renumbering) {
    code(header.code <= 2 || header.code == 255);
  } else if (type == node_query || type == node_reply) {
    code(header.code <= 2);
  } else if (type == rpl_control) {
    code(header.code <= 3 || (header.code >= 128 && header.code <= 132));
  } else if ((type >= router_solicitation && type <= redirect) ||
             (type >= inverse_solicitation && type <= certification_path_advertisement) || type == fast_handovers ||
             (type >= ilnp_update && type <= mpl_control)) {
    code(header.code == 0);
  } else if (type >= experimental_mobility && type <= multicast_router_termination) {
    // any code
  } else if (type == 100 || type == 101 || type == 200 || type == 201) {
    decoding.note(decode_event("icmpv6.experimentation_type"));
  } else if ((type > parameter_problem && type < 127) || type > mpl_control) {
    decoding.note(decode_event("icmpv6.unassigned_type"));
  } else {
    decoding.note(decode_event("icmpv6.unknown_type"));
  }
  // For types whose messages differ in the last four header bytes, Suricata counts these bytes as payload, but sets the
  // payload length four bytes short. Existing rules depend on that.
  if (!full_header) {
    packet.payload = packet.payload.size() < 4 ? Bytes{} : bytes.subspan(4, packet.payload.size() - 4);
  }
}

}  // namespace penstock::stack
