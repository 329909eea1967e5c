// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random frames for tests that compare two implementations: valid frames of every kind and link type, damaged frames
// and truncated frames.

#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

#include "packet/link_type.h"
#include "packet/testing/packet_builder.h"

namespace penstock::testing {

inline constexpr LinkType kLinkTypes[] = {LinkType::ethernet,   LinkType::raw_ip,    LinkType::null_host,
                                          LinkType::loop,       LinkType::ppp,       LinkType::linux_sll,
                                          LinkType::linux_sll2, LinkType::cisco_hdlc};

/// A frame that may be truncated: `wire_length` may be greater than its size.
struct Frame {
  Bytes bytes;
  std::uint32_t wire_length;
  LinkType link_type;
};

/// Generates valid packets of every kind and link type, and damages or truncates some of them. Purely random bytes
/// would rarely get past the first header.
class RandomFrames {
 public:
  explicit RandomFrames(std::uint64_t seed) : random_(seed) {}

  std::uint32_t below(std::size_t n) { return static_cast<std::uint32_t>(random_() % n); }

  Frame frame() {
    const LinkType link = kLinkTypes[below(std::size(kLinkTypes))];
    const bool is_v4 = below(2) == 0;
    auto builder = link_header(link, is_v4);
    network(builder, is_v4);
    transport(builder);
    Frame frame{builder.raw(bytes(payload_length())).bytes(), 0, link};
    frame.bytes.resize(frame.bytes.size() + below(8));
    for (std::uint32_t n = below(4); n > 0; --n) {
      const std::size_t headers = std::min<std::size_t>(frame.bytes.size(), 100);
      frame.bytes[below(headers)] = static_cast<std::uint8_t>(random_());
    }
    frame.wire_length = static_cast<std::uint32_t>(frame.bytes.size());
    if (below(4) == 0) frame.bytes.resize(below(std::min<std::size_t>(frame.bytes.size(), 120)));
    if (below(16) == 0) frame.wire_length = static_cast<std::uint32_t>(frame.bytes.size());
    return frame;
  }

 private:
  Bytes bytes(std::size_t count) {
    Bytes bytes(count);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random_());
    return bytes;
  }
  std::size_t payload_length() { return below(50) == 0 ? 1500 + below(64000) : below(200); }

  PacketBuilder link_header(LinkType link, bool is_v4) {
    auto builder = packet();
    const auto big = static_cast<std::uint8_t>(is_v4 ? 0x08 : 0x86);
    const auto little = static_cast<std::uint8_t>(is_v4 ? 0x00 : 0xdd);
    switch (link) {
      case LinkType::ethernet:
        builder.eth();
        for (std::uint32_t n = below(3); n > 0; --n) builder.vlan(static_cast<std::uint16_t>(random_()));
        break;
      case LinkType::raw_ip: break;
      case LinkType::null_host: builder.raw({static_cast<std::uint8_t>(is_v4 ? 2 : 30), 0, 0, 0}); break;
      case LinkType::loop: builder.raw({0, 0, 0, static_cast<std::uint8_t>(is_v4 ? 2 : 10)}); break;
      case LinkType::ppp: builder.raw({0xff, 0x03, 0, static_cast<std::uint8_t>(is_v4 ? 0x21 : 0x57)}); break;
      case LinkType::linux_sll: builder.raw(Bytes(14)).raw({big, little}); break;
      case LinkType::linux_sll2: builder.raw({big, little}).raw(Bytes(18)); break;
      case LinkType::cisco_hdlc: builder.raw({0x0f, 0, big, little}); break;
    }
    return builder;
  }
  void network(PacketBuilder& builder, bool is_v4) {
    const auto host = [this] { return std::to_string(below(250)); };
    if (is_v4) {
      const auto fragment = static_cast<std::uint16_t>(below(8) == 0 ? random_() : 0);
      builder.ipv4("10.0.0." + host(), "192.0.2." + host(), 64, Bytes(below(3) * 4, 1), fragment);
      return;
    }
    builder.ipv6("2001:db8::" + host(), "fe80::" + host());
    constexpr std::uint8_t kExtensions[] = {ip_protocol::kHopByHop, ip_protocol::kRouting, ip_protocol::kAh,
                                            ip_protocol::kDestinationOptions};
    for (std::uint32_t n = below(4); n > 0; --n) builder.extension(kExtensions[below(4)], 2);
    if (below(8) == 0) builder.fragment6(static_cast<std::uint16_t>(below(2) * 8 + below(2)));
  }
  void transport(PacketBuilder& builder) {
    const auto port = static_cast<std::uint16_t>(random_());
    switch (below(8)) {
      case 0: builder.udp(port, 53); break;
      case 1: builder.udp(port, VxlanHeader::kPort).raw({8, 0, 0, 0, 0, 0, 1, 0}); break;
      case 2: builder.icmp(8); break;
      case 3: builder.sctp(port, 36412); break;
      case 4: builder.protocol(ip_protocol::kGre).raw({0x20, 0, 8, 0, 0, 0, 0, 7}); break;
      case 5: builder.protocol(ip_protocol::kEsp); break;
      default: builder.tcp(port, 443, TcpHeader::kAck, Bytes(below(4) * 4, 1)); break;
    }
  }

  std::mt19937_64 random_;
};

}  // namespace penstock::testing
