// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "evasion/packet_writer.h"

#include <algorithm>

namespace penstock::evasion {

namespace {

constexpr std::uint8_t kTcp = 6, kUdp = 17, kFragmentHeader = 44;

/// One's complement sum of 16-bit words (RFC 1071), not folded.
std::uint64_t sum_of(BytesView bytes, std::uint64_t sum = 0) {
  for (std::size_t i = 0; i < bytes.size(); ++i) sum += i % 2 == 0 ? std::uint64_t{bytes[i]} << 8 : bytes[i];
  return sum;
}

std::uint16_t folded(std::uint64_t sum) {
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

std::uint64_t pseudo_header(const Address& from, const Address& to, std::uint8_t protocol, std::size_t length) {
  const std::size_t size = from.v6 ? 16 : 4;
  return sum_of({to.bytes.data(), size}, sum_of({from.bytes.data(), size}, protocol + length));
}

void pad(Bytes& bytes) {
  while (bytes.size() % 4 != 0) bytes.push_back(0);
}

Bytes ipv4_header(const Address& from, const Address& to, const IpFields& fields, std::uint16_t fragment,
                  std::uint16_t id, std::size_t payload) {
  Bytes options = fields.options;
  pad(options);
  Bytes header(20, 0);
  header[0] = static_cast<std::uint8_t>(0x40 | (20 + options.size()) / 4);
  const auto length = static_cast<int>(20 + options.size() + payload) + fields.length_shift;
  header[1] = fields.tos;
  put16(header, 2, static_cast<std::uint16_t>(length));
  put16(header, 4, id);
  put16(header, 6, fragment);
  header[8] = fields.ttl;
  header[9] = fields.protocol;
  std::copy_n(from.bytes.begin(), 4, header.begin() + 12);
  std::copy_n(to.bytes.begin(), 4, header.begin() + 16);
  header.insert(header.end(), options.begin(), options.end());
  const std::uint16_t checksum = folded(sum_of(header));
  if (fields.minus_zero) {
    put16(header, 4, folded(sum_of(header, std::uint64_t{0xffff} - id)));
    put16(header, 10, 0xffff);
    return header;
  }
  put16(header, 10, fields.wrong_checksum ? static_cast<std::uint16_t>(checksum ^ 0x0101) : checksum);
  return header;
}

Bytes ipv6_header(const Address& from, const Address& to, const IpFields& fields, const FragmentFields* fragment,
                  std::size_t payload) {
  Bytes header(40, 0);
  header[0] = static_cast<std::uint8_t>(0x60 | fields.tos >> 4);
  header[1] = static_cast<std::uint8_t>(fields.tos << 4);
  const std::size_t extensions = fields.options.size() + (fragment != nullptr ? 8 : 0);
  put16(header, 4, static_cast<std::uint16_t>(static_cast<int>(extensions + payload) + fields.length_shift));
  const std::uint8_t after = fragment != nullptr ? kFragmentHeader : fields.protocol;
  header[6] = fields.options.empty() ? after : fields.first_extension;
  header[7] = fields.ttl;
  std::copy_n(from.bytes.begin(), 16, header.begin() + 8);
  std::copy_n(to.bytes.begin(), 16, header.begin() + 24);
  Bytes options = fields.options;
  if (!options.empty() && fragment != nullptr) {
    // The last extension header names the next protocol, so walk to it.
    std::size_t at = 0;
    for (;;) {
      const std::size_t next = at + (std::size_t{options[at + 1]} + 1) * 8;
      if (next >= options.size()) break;
      at = next;
    }
    options[at] = kFragmentHeader;
  }
  header.insert(header.end(), options.begin(), options.end());
  if (fragment != nullptr) {
    Bytes extension(8, 0);
    extension[0] = fields.protocol;
    put16(extension, 2, static_cast<std::uint16_t>((fragment->offset & 0xfff8) | (fragment->more ? 1 : 0)));
    put32(extension, 4, fragment->id);
    header.insert(header.end(), extension.begin(), extension.end());
  }
  return header;
}

Bytes joined(Bytes header, BytesView payload) {
  header.insert(header.end(), payload.begin(), payload.end());
  return header;
}

void read_options(BytesView options, ParsedPacket& packet) {
  while (!options.empty() && options[0] != 0) {
    if (options[0] == 1) {
      options = options.subspan(1);
      continue;
    }
    if (options.size() < 2 || options[1] < 2 || options[1] > options.size()) return;
    if (options[0] == 8 && options[1] == 10) {
      packet.has_timestamp = true;
      packet.timestamp = get32(options, 2);
      packet.timestamp_echo = get32(options, 6);
    }
    if (options[0] == 3 && options[1] == 3) {
      packet.has_window_scale = true;
      packet.window_scale = options[2];
    }
    options = options.subspan(options[1]);
  }
}

}  // namespace

void put16(Bytes& to, std::size_t at, std::uint16_t value) {
  to[at] = static_cast<std::uint8_t>(value >> 8);
  to[at + 1] = static_cast<std::uint8_t>(value);
}
void put32(Bytes& to, std::size_t at, std::uint32_t value) {
  put16(to, at, static_cast<std::uint16_t>(value >> 16));
  put16(to, at + 2, static_cast<std::uint16_t>(value));
}
void append32(Bytes& to, std::uint32_t value) {
  to.resize(to.size() + 4);
  put32(to, to.size() - 4, value);
}
std::uint16_t get16(BytesView from, std::size_t at) { return static_cast<std::uint16_t>(from[at] << 8 | from[at + 1]); }
std::uint32_t get32(BytesView from, std::size_t at) {
  return static_cast<std::uint32_t>(get16(from, at)) << 16 | get16(from, at + 2);
}

Bytes tcp_segment(const Endpoint& from, const Endpoint& to, const TcpFields& fields, BytesView payload) {
  Bytes options = fields.options;
  pad(options);
  Bytes segment(20, 0);
  segment.reserve(20 + options.size() + payload.size());
  put16(segment, 0, from.port);
  put16(segment, 2, to.port);
  put32(segment, 4, fields.sequence);
  put32(segment, 8, fields.acknowledgment);
  const auto words = static_cast<std::uint8_t>((20 + options.size()) / 4);
  segment[12] = static_cast<std::uint8_t>(fields.data_offset.value_or(words) << 4 | (fields.reserved & 15));
  segment[13] = fields.flags;
  put16(segment, 14, fields.window);
  put16(segment, 18, fields.urgent);
  segment.insert(segment.end(), options.begin(), options.end());
  segment.insert(segment.end(), payload.begin(), payload.end());
  put16(segment, 16, folded(sum_of(segment, pseudo_header(from.address, to.address, kTcp, segment.size()))));
  return segment;
}

Bytes udp_datagram(const Endpoint& from, const Endpoint& to, BytesView payload, std::optional<std::uint16_t> length,
                   std::optional<std::uint16_t> checksum) {
  Bytes datagram(8 + payload.size());
  std::copy(payload.begin(), payload.end(), datagram.begin() + 8);
  put16(datagram, 0, from.port);
  put16(datagram, 2, to.port);
  const std::uint16_t stated = length.value_or(static_cast<std::uint16_t>(datagram.size()));
  put16(datagram, 4, stated);
  // The checksum covers as many bytes as the length field says.
  const std::size_t covered = stated >= 8 && stated <= datagram.size() ? stated : datagram.size();
  const std::uint64_t sum = pseudo_header(from.address, to.address, kUdp, covered);
  const std::uint16_t right = folded(sum_of(BytesView(datagram).first(covered), sum));
  put16(datagram, 6, checksum.value_or(right == 0 ? std::uint16_t{0xffff} : right));
  return datagram;
}

void make_checksum_minus_zero(Bytes& segment) {
  // In one's complement, moving the checksum's value into the pointer makes the checksum 0.
  const std::uint16_t checksum = get16(segment, 16);
  put16(segment, 18, folded(std::uint64_t{0xffff} - checksum + 0xffff - get16(segment, 18)));
  put16(segment, 16, 0xffff);
}

void spoil_checksum(std::uint8_t protocol, Bytes& transport) {
  const std::size_t at = protocol == kTcp ? 16 : 6;
  if (transport.size() < at + 2) return;
  std::uint16_t wrong = static_cast<std::uint16_t>(get16(transport, at) ^ 0x0101);
  if (wrong == 0) wrong = 0x0202;  // in UDP, 0 means no checksum
  put16(transport, at, wrong);
}

Bytes ip_packet(const Address& from, const Address& to, const IpFields& fields, BytesView payload) {
  return joined(from.v6 ? ipv6_header(from, to, fields, nullptr, payload.size())
                        : ipv4_header(from, to, fields, fields.dont_fragment ? 0x4000 : 0, fields.id, payload.size()),
                payload);
}

Bytes ip_fragment(const Address& from, const Address& to, const IpFields& fields, const FragmentFields& fragment,
                  BytesView payload) {
  const auto field = static_cast<std::uint16_t>(fragment.offset / 8 | (fragment.more ? 0x2000U : 0U) |
                                                (fields.dont_fragment ? 0x4000U : 0U));
  return joined(from.v6 ? ipv6_header(from, to, fields, &fragment, payload.size())
                        : ipv4_header(from, to, fields, field, static_cast<std::uint16_t>(fragment.id), payload.size()),
                payload);
}

std::optional<ParsedPacket> parse_packet(BytesView packet) {
  ParsedPacket parsed;
  if (packet.size() < 20) return {};
  const bool v6 = packet[0] >> 4 == 6;
  parsed.source.address.v6 = parsed.destination.address.v6 = v6;
  if (v6) {
    if (packet.size() < 40) return {};
    parsed.protocol = packet[6];
    std::copy_n(packet.begin() + 8, 16, parsed.source.address.bytes.begin());
    std::copy_n(packet.begin() + 24, 16, parsed.destination.address.bytes.begin());
    packet = packet.subspan(40);
  } else {
    if ((get16(packet, 6) & 0x3fff) != 0) return {};
    parsed.protocol = packet[9];
    std::copy_n(packet.begin() + 12, 4, parsed.source.address.bytes.begin());
    std::copy_n(packet.begin() + 16, 4, parsed.destination.address.bytes.begin());
    const std::size_t header = (packet[0] & 15U) * 4;
    if (packet.size() < header) return {};
    packet = packet.subspan(header);
  }
  if (parsed.protocol != kTcp && parsed.protocol != kUdp) return {};
  if (packet.size() < (parsed.protocol == kTcp ? 20 : 8)) return {};
  parsed.source.port = get16(packet, 0);
  parsed.destination.port = get16(packet, 2);
  if (parsed.protocol == kUdp) {
    parsed.payload = packet.subspan(8);
    return parsed;
  }
  const std::size_t header = (packet[12] >> 4) * 4U;
  if (header < 20 || header > packet.size()) return {};
  parsed.tcp.sequence = get32(packet, 4);
  parsed.tcp.acknowledgment = get32(packet, 8);
  parsed.tcp.flags = packet[13];
  parsed.tcp.window = get16(packet, 14);
  parsed.tcp.urgent = get16(packet, 18);
  read_options(packet.subspan(20, header - 20), parsed);
  parsed.payload = packet.subspan(header);
  return parsed;
}

}  // namespace penstock::evasion
