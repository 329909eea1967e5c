// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// IP packets with TCP or UDP, written header by header, with correct or wrong values as requested.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace penstock::evasion {

using Bytes = std::vector<std::uint8_t>;
using BytesView = std::span<const std::uint8_t>;

/// An IPv4 address uses the first four bytes.
struct Address {
  bool v6 = false;
  std::array<std::uint8_t, 16> bytes{};
  friend bool operator==(const Address&, const Address&) = default;
};

struct Endpoint {
  Address address;
  std::uint16_t port = 0;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

namespace tcp {
inline constexpr std::uint8_t kFin = 1, kSyn = 2, kRst = 4, kPsh = 8, kAck = 16, kUrg = 32, kEce = 64, kCwr = 128;
}

struct TcpFields {
  std::uint32_t sequence = 0, acknowledgment = 0;
  std::uint8_t flags = 0;
  std::uint8_t reserved = 0;  // the low four bits of the byte with the data offset
  std::uint16_t window = 65535, urgent = 0;
  Bytes options{};                            // padded to four bytes with zeros
  std::optional<std::uint8_t> data_offset{};  // replaces the correct one; in 4-byte words
};

[[nodiscard]] Bytes tcp_segment(const Endpoint& from, const Endpoint& to, const TcpFields& fields, BytesView payload);

/// `length`, `checksum`: replace the correct ones.
[[nodiscard]] Bytes udp_datagram(const Endpoint& from, const Endpoint& to, BytesView payload,
                                 std::optional<std::uint16_t> length = {}, std::optional<std::uint16_t> checksum = {});

/// Changes the urgent pointer of a TCP segment so that its checksum becomes 0, which is then written as 0xffff.
void make_checksum_minus_zero(Bytes& segment);

/// Makes the checksum of a TCP segment or UDP datagram wrong.
void spoil_checksum(std::uint8_t protocol, Bytes& transport);

struct IpFields {
  std::uint8_t protocol = 6;
  std::uint8_t ttl = 64, tos = 0;
  std::uint16_t id = 0;  // IPv4
  bool dont_fragment = false;
  Bytes options{};                   // IPv4: padded to four bytes with zeros. IPv6: complete extension headers
  std::uint8_t first_extension = 0;  // IPv6: the type of the first one; the last one must name `protocol` itself
  bool wrong_checksum = false;       // IPv4
  bool minus_zero = false;           // IPv4: chooses an id for which the checksum is 0, and writes it as 0xffff
  int length_shift = 0;              // added to the correct length
};

struct FragmentFields {
  std::uint32_t id = 0;
  std::uint32_t offset = 0;  // in bytes, a multiple of 8
  bool more = false;
};

[[nodiscard]] Bytes ip_packet(const Address& from, const Address& to, const IpFields& fields, BytesView payload);
[[nodiscard]] Bytes ip_fragment(const Address& from, const Address& to, const IpFields& fields,
                                const FragmentFields& fragment, BytesView payload);

/// The fields that the fuzzer reads from a packet that the host sent.
struct ParsedPacket {
  Endpoint source, destination;
  std::uint8_t protocol = 0;
  TcpFields tcp;
  bool has_timestamp = false;
  std::uint32_t timestamp = 0, timestamp_echo = 0;
  bool has_window_scale = false;
  std::uint8_t window_scale = 0;
  BytesView payload;
};
/// Returns nothing if it is neither TCP nor UDP, or is a fragment or truncated.
[[nodiscard]] std::optional<ParsedPacket> parse_packet(BytesView packet);

void put16(Bytes& to, std::size_t at, std::uint16_t value);
void put32(Bytes& to, std::size_t at, std::uint32_t value);
void append32(Bytes& to, std::uint32_t value);
[[nodiscard]] std::uint16_t get16(BytesView from, std::size_t at);
[[nodiscard]] std::uint32_t get32(BytesView from, std::size_t at);

}  // namespace penstock::evasion
