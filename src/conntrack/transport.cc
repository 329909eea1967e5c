// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/transport.h"

#include <algorithm>

#include "conntrack/tcp_segment.h"
#include "packet/checksum.h"

namespace penstock::conntrack {
namespace {

/// Over the first `covered` bytes and, except for ICMP over IPv4, a pseudo-header with `protocol` (RFC 9293 §3.1, RFC
/// 8200 §8.1). As in the kernel, the length in it is that of the IP payload.
bool is_checksum_right(PacketView packet, const Transport& transport, std::uint32_t covered,
                       std::uint8_t protocol) noexcept {
  constexpr std::uint32_t kMost = 0x8000;  // checksum_add takes less than 64 KiB, and a jumbo payload has more
  // One of the two zeros of one's complement: with it, a message of zeros only has a correct checksum, as in the
  // kernel.
  std::uint32_t sum = 0xffff;
  if (protocol != ip_protocol::kIcmp) {
    const std::uint8_t* const ip = packet.frame + packet.layout().network_offset;
    sum += transport.tuple.ip_version == 4 ? checksum_add(ip + 12, 8) : checksum_add(ip + 8, 32);
    sum += protocol + (transport.length >> 16) + (transport.length & 0xffff);
  }
  for (std::uint32_t at = 0; at < covered; at += kMost) {
    sum = (sum & 0xffff) + (sum >> 16);
    sum = checksum_add(transport.bytes.data() + at, std::min(kMost, covered - at), sum);
  }
  return checksum_finish(sum) == 0;
}

/// The length of what follows the IP headers, on the wire.
std::uint32_t length_on_the_wire(PacketView packet) noexcept {
  const PacketLayout& layout = packet.layout();
  if (!layout.has(PacketLayout::kTruncated)) return layout.end - layout.transport_offset;
  const std::uint32_t end = layout.network == NetworkLayer::ipv4
                                ? layout.network_offset + packet.ipv4().total_length.value()
                                : layout.network_offset + static_cast<std::uint32_t>(sizeof(Ipv6Header)) +
                                      packet.ipv6().payload_length.value();
  // A jumbo payload's length is in an option: take what was captured.
  return std::max(end, layout.end) - layout.transport_offset;
}

}  // namespace

void read_addresses(PacketView packet, Tuple& tuple) noexcept {
  if (packet.layout().network == NetworkLayer::ipv4) {
    tuple.ip_version = 4;
    tuple.source.low = packet.ipv4().source.value();
    tuple.destination.low = packet.ipv4().destination.value();
  } else {
    tuple.ip_version = 6;
    tuple.source = packet.ipv6().source_address();
    tuple.destination = packet.ipv6().destination_address();
  }
}

bool read_transport(PacketView packet, Transport& transport) noexcept {
  const PacketLayout& layout = packet.layout();
  const bool v6 = layout.network == NetworkLayer::ipv6;
  // IPv6's "no next header", and headers that are incomplete.
  if (v6 && (layout.transport == ip_protocol::kNone || layout.transport == ip_protocol::kHopByHop ||
             layout.transport == ip_protocol::kRouting || layout.transport == ip_protocol::kFragment ||
             layout.transport == ip_protocol::kAh || layout.transport == ip_protocol::kDestinationOptions)) {
    return false;
  }
  read_addresses(packet, transport.tuple);
  transport.bytes = {packet.frame + layout.transport_offset, layout.end - layout.transport_offset};
  transport.length = length_on_the_wire(packet);
  return read_ports(transport.bytes, layout.transport, transport.tuple);
}

std::optional<Reason> find_error(PacketView packet, const Transport& transport, bool check_checksum) noexcept {
  const PacketLayout& layout = packet.layout();
  const std::uint8_t protocol = layout.transport;
  const bool v4 = layout.network == NetworkLayer::ipv4;
  const bool fragment = layout.has(PacketLayout::kFragment);
  std::uint32_t covered = transport.length;
  switch (protocol) {
    case ip_protocol::kTcp:
      if (!layout.has(PacketLayout::kTransportHeader)) return Reason::malformed;
      if (!are_tcp_flags_valid(packet.tcp().flags)) return Reason::tcp_flags;
      break;
    case ip_protocol::kUdp: {
      if (!layout.has(PacketLayout::kTransportHeader)) return Reason::malformed;
      const std::uint32_t length = packet.udp().length.value();
      if (length < sizeof(UdpHeader) || (length > transport.length && !fragment)) return Reason::malformed;
      if (packet.udp().checksum.value() == 0) return std::nullopt;
      break;
    }
    case ip_protocol::kUdpLite: {
      if (!layout.has(PacketLayout::kTransportHeader)) return Reason::malformed;
      const std::uint32_t coverage = packet.udp().length.value();
      if (coverage != 0) {
        if (coverage < sizeof(UdpHeader) || (coverage > transport.length && !fragment)) return Reason::malformed;
        covered = coverage;
      }
      if (packet.udp().checksum.value() == 0) return Reason::checksum;  // RFC 3828 §3.1
      break;
    }
    case ip_protocol::kIcmp:
    case ip_protocol::kIcmpv6:
      if (v4 != (protocol == ip_protocol::kIcmp)) return Reason::no_connection;
      if (!layout.has(PacketLayout::kTransportHeader)) return Reason::malformed;
      break;
    default: return std::nullopt;
  }
  if (!check_checksum || fragment || layout.has(PacketLayout::kTruncated)) return std::nullopt;
  return is_checksum_right(packet, transport, covered, protocol) ? std::nullopt : std::optional(Reason::checksum);
}

}  // namespace penstock::conntrack
