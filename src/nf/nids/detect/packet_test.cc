// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/packet_test.h"

#include <optional>

#include "base/byte_order.h"
#include "nf/nids/detect/packet_headers.h"
#include "packet/ip.h"
#include "packet/transport.h"
#include "stack/tcp_session.h"

namespace penstock::nids {

namespace {

using stack::Bytes;
using stack::DecodedPacket;
using stack::TrackedPacket;

constexpr std::uint8_t kIcmpEchoReply = 0, kIcmpEcho = 8, kIcmpTimestamp = 13, kIcmpAddressMaskReply = 18;
constexpr std::uint8_t kIcmpv6TooBig = 2, kIcmpv6Echo = 128, kIcmpv6EchoReply = 129;

template <typename Header>
const Header* as(Bytes bytes) noexcept {
  return bytes.size() < sizeof(Header) ? nullptr : reinterpret_cast<const Header*>(bytes.data());
}

const Ipv4Header* ipv4_header(const DecodedPacket& packet) noexcept {
  return packet.ip_version == 4 ? as<Ipv4Header>(packet.ip) : nullptr;
}

const TcpHeader* tcp_header(const DecodedPacket& packet) noexcept {
  return packet.is_tcp() ? as<TcpHeader>(packet.transport) : nullptr;
}

bool is_icmpv4(const DecodedPacket& packet) noexcept {
  return packet.ip_version == 4 && packet.protocol == ip_protocol::kIcmp;
}
bool is_icmpv6(const DecodedPacket& packet) noexcept {
  return packet.ip_version == 6 && packet.protocol == ip_protocol::kIcmpv6;
}
const IcmpHeader* icmp_header(const DecodedPacket& packet) noexcept {
  return is_icmpv4(packet) || is_icmpv6(packet) ? as<IcmpHeader>(packet.transport) : nullptr;
}

/// Queries and their replies have an identifier and a sequence number.
bool has_icmp_id(const DecodedPacket& packet, std::uint8_t type) noexcept {
  if (is_icmpv6(packet)) return type == kIcmpv6Echo || type == kIcmpv6EchoReply;
  return type == kIcmpEchoReply || type == kIcmpEcho || (type >= kIcmpTimestamp && type <= kIcmpAddressMaskReply);
}

bool contains(const AddressSet& set, const DecodedPacket& packet, const stack::Endpoint& end) noexcept {
  if (packet.ip_version == 4) return set.contains(Ipv4Address{static_cast<std::uint32_t>(end.address.low)});
  return set.contains(end.address);
}

bool has_ports(const TrackedPacket& tracked) noexcept {
  const DecodedPacket& packet = tracked.packet;
  if (tracked.stream_end) return true;  // the flow has ports
  return !packet.transport.empty() && !packet.fragment &&
         (packet.protocol == ip_protocol::kTcp || packet.protocol == ip_protocol::kUdp ||
          packet.protocol == ip_protocol::kSctp);
}

/// Tests addresses and ports with the packet going from `source` to `destination`.
bool ends_hold(const Rule& rule, const TrackedPacket& tracked, const stack::Endpoint& source,
               const stack::Endpoint& destination) noexcept {
  const DecodedPacket& packet = tracked.packet;
  if (!rule.source_ports.is_any() || !rule.destination_ports.is_any()) {
    if (!has_ports(tracked)) return false;
    if (!rule.source_ports.contains(source.port) || !rule.destination_ports.contains(destination.port)) return false;
  }
  return (rule.destination.is_any() || contains(rule.destination, packet, destination)) &&
         (rule.source.is_any() || contains(rule.source, packet, source));
}

std::optional<std::uint64_t> number_of(HeaderNumber::Header header, const DecodedPacket& packet) noexcept {
  using Header = HeaderNumber::Header;
  switch (header) {
    case Header::tcp_ack:
    case Header::tcp_sequence:
    case Header::tcp_window: {
      const TcpHeader* const tcp = tcp_header(packet);
      if (tcp == nullptr) return std::nullopt;
      if (header == Header::tcp_window) return tcp->window.value();
      return header == Header::tcp_ack ? tcp->acknowledgment.value() : tcp->sequence.value();
    }
    case Header::tcp_mss: {
      if (tcp_header(packet) == nullptr) return std::nullopt;
      return tcp_mss(packet.transport);
    }
    case Header::ttl:
      if (const Ipv4Header* const ip = ipv4_header(packet)) return ip->ttl;
      if (packet.ip_version == 6 && packet.ip.size() >= sizeof(Ipv6Header)) {
        return as<Ipv6Header>(packet.ip)->hop_limit;
      }
      return std::nullopt;
    case Header::tos:
    case Header::ip_id: {
      const Ipv4Header* const ip = ipv4_header(packet);
      if (ip == nullptr) return std::nullopt;
      return header == Header::tos ? ip->tos : ip->id.value();
    }
    case Header::ip_protocol:
      if (packet.ip_version == 0) return std::nullopt;
      return packet.protocol;
    case Header::icmp_type:
    case Header::icmp_code: {
      const IcmpHeader* const icmp = icmp_header(packet);
      if (icmp == nullptr) return std::nullopt;
      return header == Header::icmp_type ? icmp->type : icmp->code;
    }
    case Header::icmp_id:
    case Header::icmp_sequence: {
      const IcmpHeader* const icmp = icmp_header(packet);
      if (icmp == nullptr || !has_icmp_id(packet, icmp->type)) return std::nullopt;
      return header == Header::icmp_id ? icmp->rest.value() >> 16 : icmp->rest.value() & 0xffff;
    }
    case Header::icmpv6_mtu: {
      const IcmpHeader* const icmp = is_icmpv6(packet) ? icmp_header(packet) : nullptr;
      if (icmp == nullptr || icmp->type != kIcmpv6TooBig) return std::nullopt;
      return icmp->rest.value();
    }
  }
  return std::nullopt;
}

/// Empty for IPv6 packets without a fragment header, and for packets other than IP. In units of 8 bytes for IPv4 and in
/// bytes for IPv6, as Suricata compares them.
std::optional<std::uint64_t> fragment_offset(const DecodedPacket& packet) noexcept {
  if (const Ipv4Header* const ip = ipv4_header(packet)) return ip->fragment.value() & Ipv4Header::kOffsetMask;
  if (packet.ip_version != 6 || packet.ip.size() < sizeof(Ipv6Header)) return std::nullopt;
  const auto offset_in = [](const Ipv6FragmentHeader* header) -> std::optional<std::uint64_t> {
    if (header == nullptr) return std::nullopt;
    return header->fragment.value() & Ipv6FragmentHeader::kOffsetMask;
  };
  if (packet.fragment) return offset_in(as<Ipv6FragmentHeader>(packet.ip_payload));
  // An atomic fragment (RFC 6946) has the header as an ordinary extension header.
  std::uint8_t next = as<Ipv6Header>(packet.ip)->next_header;
  for (Bytes rest = packet.ip.subspan(sizeof(Ipv6Header)); rest.size() >= sizeof(Ipv6FragmentHeader);) {
    if (next == ip_protocol::kFragment) return offset_in(as<Ipv6FragmentHeader>(rest));
    const auto* const extension = as<Ipv6Extension>(rest);
    const std::size_t length = next == ip_protocol::kAh ? (extension->length + 2U) * 4U : (extension->length + 1U) * 8U;
    next = extension->next_header;
    if (length > rest.size()) return std::nullopt;
    rest = rest.subspan(length);
  }
  return std::nullopt;
}

// Options that test the packet itself do not match the packet that the stack makes at the end of a stream.

bool holds(const Dsize& match, const TrackedPacket& packet) noexcept {
  if (packet.stream_end) return false;
  return in_range(match.range, packet.packet.payload.size());
}

bool holds(const TcpFlags& match, const TrackedPacket& packet) noexcept {
  const TcpHeader* const tcp = packet.stream_end ? nullptr : tcp_header(packet.packet);
  if (tcp == nullptr) return false;
  if (match.flags == 0 && tcp->flags != 0) return match.how == TcpFlags::How::not_these;
  const unsigned flags = tcp->flags & ~unsigned{match.ignored};
  switch (match.how) {
    case TcpFlags::How::exactly: return flags == match.flags;
    case TcpFlags::How::all_of: return (flags & match.flags) == match.flags;
    case TcpFlags::How::any_of: return (flags & match.flags) != 0;
    case TcpFlags::How::not_these: return (flags & match.flags) != match.flags;
  }
  return false;
}

bool holds(const HeaderNumber& match, const TrackedPacket& packet) noexcept {
  // The protocol is part of the rule's header, so it also applies to these packets.
  if (packet.stream_end && match.header != HeaderNumber::Header::ip_protocol) return false;
  const std::optional<std::uint64_t> value = number_of(match.header, packet.packet);
  return value && in_range(match.range, *value);
}

bool holds(const IpOption& match, const TrackedPacket& packet) noexcept {
  return !packet.stream_end && packet.packet.ip_version == 4 && has_ip_option(match, packet.packet.ip);
}

bool holds(const FragmentBits& match, const TrackedPacket& packet) noexcept {
  const Ipv4Header* const ip = packet.stream_end ? nullptr : ipv4_header(packet.packet);
  if (ip == nullptr) return false;
  const unsigned bits = ip->fragment.value() >> 13;
  const unsigned wanted =
      (match.reserved ? 4U : 0U) | (match.dont_fragment ? 2U : 0U) | (match.more_fragments ? 1U : 0U);
  switch (match.how) {
    case FragmentBits::How::exactly: return bits == wanted;
    case FragmentBits::How::all_of:
      // Suricata's `+`: all of them, and at least one other.
      return (bits & wanted) == wanted && bits != wanted;
    case FragmentBits::How::any_of: return (bits & wanted) != 0;
    case FragmentBits::How::not_these: return (bits & wanted) != wanted;
  }
  return false;
}

bool holds(const FragmentOffset& match, const TrackedPacket& packet) noexcept {
  const auto offset = packet.stream_end ? std::nullopt : fragment_offset(packet.packet);
  return offset && in_range(match.range, *offset);
}

bool holds(const SameIp&, const TrackedPacket& packet) noexcept {
  return packet.packet.ip_version != 0 && packet.packet.source.address == packet.packet.destination.address;
}

bool holds(const ChecksumMatch& match, const TrackedPacket& packet) noexcept {
  const auto valid = packet.stream_end ? std::nullopt : checksum_valid(match.of, packet.packet);
  return valid && *valid == match.valid;
}

bool holds(const StreamSize& match, const TrackedPacket& packet) noexcept {
  if (packet.packet.protocol != ip_protocol::kTcp || packet.flow == nullptr || packet.flow->tcp == nullptr) {
    return false;
  }
  const stack::TcpSession& session = *packet.flow->tcp;
  const auto side = [&](stack::Direction direction) { return in_range(match.range, session.stream_bytes(direction)); };
  switch (match.side) {
    case StreamSize::Side::server: return side(stack::Direction::to_client);
    case StreamSize::Side::client: return side(stack::Direction::to_server);
    case StreamSize::Side::both: return side(stack::Direction::to_client) && side(stack::Direction::to_server);
    case StreamSize::Side::either: return side(stack::Direction::to_client) || side(stack::Direction::to_server);
  }
  return false;
}

bool holds(const StreamEventMatch& match, const TrackedPacket& packet) noexcept {
  return packet.stream_events.test(match.event.index);
}

bool holds(const DecodeEventMatch& match, const TrackedPacket& packet) noexcept {
  return packet.packet.events.test(match.event.index);
}

}  // namespace

bool protocol_holds(RuleProtocol protocol, const DecodedPacket& packet) noexcept {
  if (protocol == RuleProtocol::pkthdr) return true;
  if (packet.ip_version == 0) return false;
  switch (protocol) {
    case RuleProtocol::ip:
    case RuleProtocol::pkthdr: return true;
    case RuleProtocol::ipv4: return packet.ip_version == 4;
    case RuleProtocol::ipv6: return packet.ip_version == 6;
    case RuleProtocol::tcp:
    case RuleProtocol::tcp_pkt:
    case RuleProtocol::tcp_stream: return packet.protocol == ip_protocol::kTcp;
    case RuleProtocol::udp: return packet.protocol == ip_protocol::kUdp;
    case RuleProtocol::icmp: return packet.protocol == ip_protocol::kIcmp || packet.protocol == ip_protocol::kIcmpv6;
    case RuleProtocol::icmpv4: return packet.protocol == ip_protocol::kIcmp;
    case RuleProtocol::icmpv6: return packet.protocol == ip_protocol::kIcmpv6;
    case RuleProtocol::sctp: return packet.protocol == ip_protocol::kSctp;
  }
  return false;
}

bool header_holds(const Rule& rule, const TrackedPacket& packet) noexcept {
  const DecodedPacket& p = packet.packet;
  if (!protocol_holds(rule.protocol, p)) return false;
  return ends_hold(rule, packet, p.source, p.destination) ||
         (rule.direction == RuleDirection::both_ways && ends_hold(rule, packet, p.destination, p.source));
}

bool flow_holds(const FlowMatch& match, const TrackedPacket& packet, bool in_stream) noexcept {
  const bool asks_state = match.established || match.not_established || match.stateless || match.only_stream ||
                          match.only_frag || match.no_frag;
  if (packet.flow == nullptr) {
    // A packet without a flow counts as going to a server, if the rule tests nothing else.
    if (asks_state || match.to_client || (match.to_server && match.no_stream)) return false;
    return !match.no_stream || !in_stream;
  }
  if (match.to_server && packet.direction != stack::Direction::to_server) return false;
  if (match.to_client && packet.direction != stack::Direction::to_client) return false;
  if (match.established && !packet.established) return false;
  if (match.not_established && packet.established) return false;
  if (match.only_stream && !in_stream) return false;
  if (match.no_stream && in_stream) return false;
  if (match.only_frag && !packet.packet.reassembled) return false;
  return !(match.no_frag && packet.packet.reassembled);
}

bool holds(const PacketMatch& match, const TrackedPacket& packet) noexcept {
  return std::visit([&](const auto& of) { return holds(of, packet); }, match);
}

Bytes header_buffer(Buffer buffer, const DecodedPacket& packet) noexcept {
  const auto transport_if = [&](bool is) { return is ? packet.transport : Bytes(); };
  switch (buffer) {
    case Buffer::ipv4_header: return packet.ip_version == 4 ? packet.ip : Bytes();
    case Buffer::ipv6_header: return packet.ip_version == 6 ? packet.ip : Bytes();
    case Buffer::tcp_header: return transport_if(packet.is_tcp());
    case Buffer::udp_header: return transport_if(packet.is_udp());
    case Buffer::icmpv4_header: return transport_if(is_icmpv4(packet));
    case Buffer::icmpv6_header: return transport_if(is_icmpv6(packet));
    case Buffer::payload:
    case Buffer::base64_data: break;
  }
  return {};
}

}  // namespace penstock::nids
