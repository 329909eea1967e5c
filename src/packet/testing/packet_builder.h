// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Test packets that read as sentences: packet().eth().vlan(7).ipv4("10.0.0.1", "10.0.0.2").udp(53, 4000).payload("x").
// `bytes()` fills in lengths and checksums, with its own code, so that tests can use it as an oracle.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ip_address.h"
#include "packet/ethernet.h"
#include "packet/ip.h"
#include "packet/packet.h"
#include "packet/transport.h"

namespace penstock::testing {

using Bytes = std::vector<std::uint8_t>;

/// The Internet checksum computed one byte at a time, independently of packet/checksum.h.
inline std::uint16_t slow_checksum(const Bytes& bytes, std::size_t from, std::size_t to, std::uint64_t initial = 0) {
  std::uint64_t sum = initial;
  for (std::size_t i = from; i < to; ++i) sum += static_cast<std::uint64_t>(bytes[i]) << ((i - from) % 2 == 0 ? 8 : 0);
  while (sum > 0xffff) sum = sum % 0x10000 + sum / 0x10000;
  return static_cast<std::uint16_t>(0xffff - sum);
}

class PacketBuilder {
 public:
  PacketBuilder& eth(MacAddress destination = {{2, 0, 0, 0, 0, 2}}, MacAddress source = {{2, 0, 0, 0, 0, 1}}) {
    for (const std::uint8_t b : destination.bytes) out_.push_back(b);
    for (const std::uint8_t b : source.bytes) out_.push_back(b);
    type_at_ = out_.size();
    return be16(0);
  }
  PacketBuilder& vlan(std::uint16_t tci, std::uint16_t tpid = ether_type::kVlan) {
    set_type(tpid);
    be16(tci);
    type_at_ = out_.size();
    return be16(0);
  }
  PacketBuilder& ether_type(std::uint16_t type) { return set_type(type), *this; }

  PacketBuilder& ipv4(std::string_view source, std::string_view destination, std::uint8_t ttl = 64,
                      const Bytes& options = {}, std::uint16_t fragment = 0) {
    set_type(ether_type::kIpv4);
    set_protocol(ip_protocol::kIpv4);
    ip_at_ = out_.size();
    is_v4_ = true;
    out_.push_back(static_cast<std::uint8_t>(0x40 | (5 + options.size() / 4)));
    out_.push_back(0);
    be16(0).be16(0x1234).be16(fragment);
    out_.push_back(ttl);
    protocol_at_ = out_.size();
    out_.push_back(255);
    be16(0).be32(parse_ipv4(source)->bits).be32(parse_ipv4(destination)->bits);
    raw(options);
    ip_end_ = out_.size();
    return *this;
  }
  PacketBuilder& ipv6(std::string_view source, std::string_view destination, std::uint8_t hop_limit = 64) {
    set_type(ether_type::kIpv6);
    set_protocol(ip_protocol::kIpv6);
    ip_at_ = out_.size();
    is_v4_ = false;
    be32(0x60000000).be16(0);
    protocol_at_ = out_.size();
    out_.push_back(ip_protocol::kNone);
    out_.push_back(hop_limit);
    for (const auto& text : {source, destination}) {
      const Ipv6Address address = *parse_ipv6(text);
      be32(static_cast<std::uint32_t>(address.high >> 32)).be32(static_cast<std::uint32_t>(address.high));
      be32(static_cast<std::uint32_t>(address.low >> 32)).be32(static_cast<std::uint32_t>(address.low));
    }
    ip_end_ = out_.size();
    return *this;
  }
  /// An IPv6 extension header of `words` * 8 bytes, or a fragment header with `fragment` in its offset field.
  PacketBuilder& extension(std::uint8_t protocol, unsigned words = 1) {
    set_protocol(protocol);
    protocol_at_ = out_.size();
    out_.push_back(ip_protocol::kNone);
    out_.push_back(static_cast<std::uint8_t>(words - 1));
    out_.resize(out_.size() + words * 8 - 2);
    return *this;
  }
  PacketBuilder& fragment6(std::uint16_t fragment) {
    set_protocol(ip_protocol::kFragment);
    protocol_at_ = out_.size();
    out_.push_back(ip_protocol::kNone);
    out_.push_back(0);
    return be16(fragment).be32(77);
  }
  PacketBuilder& protocol(std::uint8_t number) { return set_protocol(number), *this; }

  PacketBuilder& tcp(std::uint16_t source, std::uint16_t destination, std::uint8_t flags = TcpHeader::kAck,
                     const Bytes& options = {}) {
    transport(ip_protocol::kTcp, 16);
    be16(source).be16(destination).be32(1).be32(2);
    out_.push_back(static_cast<std::uint8_t>((5 + options.size() / 4) << 4));
    out_.push_back(flags);
    be16(1000).be16(0).be16(0);
    return raw(options);
  }
  PacketBuilder& udp(std::uint16_t source, std::uint16_t destination) {
    transport(ip_protocol::kUdp, 6);
    udp_ = true;
    return be16(source).be16(destination).be16(0).be16(0);
  }
  PacketBuilder& sctp(std::uint16_t source, std::uint16_t destination) {
    transport(ip_protocol::kSctp, 0);
    return be16(source).be16(destination).be32(9).be32(0);
  }
  PacketBuilder& icmp(std::uint8_t type, std::uint8_t code = 0) {
    transport(is_v4_ ? ip_protocol::kIcmp : ip_protocol::kIcmpv6, 2);
    out_.push_back(type);
    out_.push_back(code);
    return be16(0).be32(0);
  }

  PacketBuilder& payload(std::string_view text) {
    out_.insert(out_.end(), text.begin(), text.end());
    return *this;
  }
  PacketBuilder& raw(const Bytes& bytes) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  /// Adds link-layer padding after the IP packet, up to `frame_length`.
  PacketBuilder& padded_to(std::size_t frame_length) {
    padding_to_ = frame_length;
    return *this;
  }

  /// The frame, with the lengths and checksums of the innermost IP packet filled in.
  [[nodiscard]] Bytes bytes() const {
    Bytes b = out_;
    if (ip_at_ != kNone) {
      const auto put16 = [&](std::size_t at, std::size_t v) {
        b[at] = static_cast<std::uint8_t>(v >> 8);
        b[at + 1] = static_cast<std::uint8_t>(v);
      };
      if (udp_) put16(l4_at_ + 4, b.size() - l4_at_);
      if (is_v4_) {
        put16(ip_at_ + 2, b.size() - ip_at_);
        put16(ip_at_ + 10, slow_checksum(b, ip_at_, ip_end_));
      } else {
        put16(ip_at_ + 4, b.size() - ip_at_ - 40);
      }
      if (l4_checksum_at_ != 0) {
        const std::size_t addresses = ip_at_ + (is_v4_ ? 12 : 8);
        std::uint64_t pseudo = b.size() - l4_at_ + l4_protocol_;
        const bool with_pseudo = l4_protocol_ != ip_protocol::kIcmp;
        for (std::size_t i = addresses; i < addresses + (is_v4_ ? 8 : 32); i += 2) pseudo += b[i] * 256U + b[i + 1];
        put16(l4_checksum_at_, slow_checksum(b, l4_at_, b.size(), with_pseudo ? pseudo : 0));
      }
    }
    if (b.size() < padding_to_) b.resize(padding_to_);
    return b;
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  PacketBuilder& be16(std::uint16_t v) {
    out_.push_back(static_cast<std::uint8_t>(v >> 8));
    out_.push_back(static_cast<std::uint8_t>(v));
    return *this;
  }
  PacketBuilder& be32(std::uint32_t v) {
    return be16(static_cast<std::uint16_t>(v >> 16)).be16(static_cast<std::uint16_t>(v));
  }
  void set_type(std::uint16_t type) {
    if (type_at_ == kNone || ip_at_ != kNone) return;
    out_[type_at_] = static_cast<std::uint8_t>(type >> 8);
    out_[type_at_ + 1] = static_cast<std::uint8_t>(type);
  }
  void set_protocol(std::uint8_t number) {
    if (protocol_at_ != kNone) out_[protocol_at_] = number;
  }
  void transport(std::uint8_t protocol, std::size_t checksum_offset) {
    set_protocol(protocol);
    l4_at_ = out_.size();
    l4_protocol_ = protocol;
    l4_checksum_at_ = checksum_offset == 0 ? 0 : l4_at_ + checksum_offset;
  }

  Bytes out_;
  std::size_t type_at_ = kNone, ip_at_ = kNone, ip_end_ = 0, protocol_at_ = kNone;
  std::size_t l4_at_ = 0, l4_checksum_at_ = 0, padding_to_ = 0;
  std::uint8_t l4_protocol_ = 0;
  bool is_v4_ = true;
  bool udp_ = false;
};

inline PacketBuilder packet() { return {}; }

/// Recomputes the checksums of an IPv4 Ethernet frame that was edited by hand: both, or only the header's for a
/// fragment.
inline Bytes with_right_checksums(Bytes frame) {
  constexpr std::size_t kIp = 14;
  const std::size_t transport = kIp + (frame[kIp] & 15U) * 4U;
  const auto put16 = [&](std::size_t at, std::uint16_t value) {
    frame[at] = static_cast<std::uint8_t>(value >> 8);
    frame[at + 1] = static_cast<std::uint8_t>(value);
  };
  put16(kIp + 10, 0);
  put16(kIp + 10, slow_checksum(frame, kIp, transport));
  const std::uint8_t protocol = frame[kIp + 9];
  const bool is_fragment = (frame[kIp + 6] & 0x3f) != 0 || frame[kIp + 7] != 0;
  if (is_fragment || (protocol != ip_protocol::kTcp && protocol != ip_protocol::kUdp)) return frame;
  const std::size_t at = transport + (protocol == ip_protocol::kTcp ? 16 : 6);
  const std::size_t end = kIp + (static_cast<std::size_t>(frame[kIp + 2]) << 8 | frame[kIp + 3]);
  std::uint64_t pseudo = protocol + (end - transport);
  for (std::size_t i = kIp + 12; i < kIp + 20; i += 2) pseudo += frame[i] * 256U + frame[i + 1];
  put16(at, 0);
  put16(at, slow_checksum(frame, transport, end, pseudo));
  return frame;
}

}  // namespace penstock::testing
