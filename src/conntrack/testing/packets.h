// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// IP packets for tests, without a link header and with correct checksums.

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "packet/packet.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::conntrack {

using Packet = std::vector<std::uint8_t>;

inline void put_be16(Packet& packet, std::size_t at, std::uint32_t value) {
  packet[at] = static_cast<std::uint8_t>(value >> 8);
  packet[at + 1] = static_cast<std::uint8_t>(value);
}
inline void put_be32(Packet& packet, std::size_t at, std::uint32_t value) {
  put_be16(packet, at, value >> 16);
  put_be16(packet, at + 2, value & 0xffff);
}

/// Addresses and ports of one direction.
struct Ends {
  std::string source = "10.1.0.1", destination = "10.2.0.1";
  std::uint16_t source_port = 1000, destination_port = 80;

  [[nodiscard]] bool is_v6() const { return source.find(':') != std::string::npos; }
  [[nodiscard]] Ends reversed() const { return {destination, source, destination_port, source_port}; }
};

inline constexpr std::size_t header_length_of(bool v6) { return v6 ? sizeof(Ipv6Header) : sizeof(Ipv4Header); }

/// An IP packet with these bytes after its header. `checksum_at`: where in them the checksum goes.
inline Packet ip_packet(const Ends& ends, std::uint8_t protocol, const Packet& transport,
                        std::size_t checksum_at = std::size_t(-1)) {
  testing::PacketBuilder builder;
  if (ends.is_v6()) {
    builder.ipv6(ends.source, ends.destination);
  } else {
    builder.ipv4(ends.source, ends.destination);
  }
  Packet packet = builder.protocol(protocol).raw(transport).bytes();
  if (checksum_at == std::size_t(-1)) return packet;
  const std::size_t header = header_length_of(ends.is_v6());
  std::uint64_t pseudo = 0;
  if (protocol != ip_protocol::kIcmp) {
    pseudo = protocol + transport.size();
    for (std::size_t i = ends.is_v6() ? 8 : 12; i < header; i += 2) pseudo += packet[i] * 256U + packet[i + 1];
  }
  put_be16(packet, header + checksum_at, 0);
  const std::uint16_t sum = testing::slow_checksum(packet, header, packet.size(), pseudo);
  put_be16(packet, header + checksum_at, sum == 0 && protocol == ip_protocol::kUdp ? 0xffff : sum);
  return packet;
}

struct TcpFields {
  std::uint8_t flags = TcpHeader::kAck;
  std::uint32_t sequence = 0, ack = 0;
  std::uint16_t window = 1000;
  std::size_t payload = 0;
  Packet options{};    // padded to a multiple of four bytes with NOPs
  std::string text{};  // what the payload is, instead of so many bytes of any kind
};

inline Packet tcp_packet(const Ends& ends, TcpFields fields) {
  while (fields.options.size() % 4 != 0) fields.options.push_back(1);
  if (!fields.text.empty()) fields.payload = fields.text.size();
  Packet transport(sizeof(TcpHeader) + fields.options.size() + fields.payload, 'x');
  std::ranges::copy(fields.text, transport.end() - static_cast<std::ptrdiff_t>(fields.text.size()));
  put_be16(transport, 0, ends.source_port);
  put_be16(transport, 2, ends.destination_port);
  put_be32(transport, 4, fields.sequence);
  put_be32(transport, 8, fields.ack);
  transport[12] = static_cast<std::uint8_t>((5 + fields.options.size() / 4) << 4);
  transport[13] = fields.flags;
  put_be16(transport, 14, fields.window);
  put_be16(transport, 18, 0);
  std::ranges::copy(fields.options, transport.begin() + sizeof(TcpHeader));
  return ip_packet(ends, ip_protocol::kTcp, transport, 16);
}

/// `length` and `checksum` of the header: of the whole payload, unless given.
inline Packet udp_packet(const Ends& ends, std::size_t payload = 4, std::uint8_t protocol = ip_protocol::kUdp,
                         int length = -1) {
  Packet transport(sizeof(UdpHeader) + payload, 'u');
  put_be16(transport, 0, ends.source_port);
  put_be16(transport, 2, ends.destination_port);
  put_be16(transport, 4,
           length >= 0 ? static_cast<std::uint32_t>(length) : static_cast<std::uint32_t>(transport.size()));
  return ip_packet(ends, protocol, transport, 6);
}

/// The message's family is that of the addresses.
inline Packet icmp_packet(const Ends& ends, std::uint8_t type, std::uint8_t code, std::uint16_t id,
                          const Packet& payload = {1, 2, 3, 4}) {
  Packet transport(sizeof(IcmpHeader) + payload.size());
  transport[0] = type;
  transport[1] = code;
  put_be16(transport, 4, id);
  std::ranges::copy(payload, transport.begin() + sizeof(IcmpHeader));
  return ip_packet(ends, ends.is_v6() ? ip_protocol::kIcmpv6 : ip_protocol::kIcmp, transport, 2);
}

/// A packet with its descriptor, as tracking takes it.
struct ParsedPacket {
  explicit ParsedPacket(Packet frame, std::uint32_t wire_length = 0) : bytes(std::move(frame)) {
    descriptor.length = static_cast<std::uint32_t>(bytes.size());
    descriptor.wire_length = wire_length != 0 ? wire_length : descriptor.length;
    descriptor.link_type = LinkType::raw_ip;
    parse(view());
  }
  [[nodiscard]] PacketView view() { return {bytes.data(), &descriptor}; }

  Packet bytes;
  PacketDescriptor descriptor;
};

}  // namespace penstock::conntrack
