// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random policies and SAs, and random packets that cluster at the edges of their selectors.

#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "nf/ipsec/sa/sa.h"
#include "nf/ipsec/selection/policy.h"
#include "packet/testing/packet_builder.h"

namespace penstock::ipsec {

/// A packet as the oracle sees it.
struct Flow {
  IpAddress source, destination;
  std::uint8_t protocol = 0;
  // Ports, or type and code. Empty for fragments and for protocols without them.
  std::optional<std::uint16_t> first, second;
  penstock::testing::Bytes frame;
};

/// Draws from few values, so that selectors overlap and packets hit their edges.
class SelectionDraw {
 public:
  explicit SelectionDraw(std::uint64_t seed) : random_(seed) {}

  std::uint32_t below(std::size_t n) { return static_cast<std::uint32_t>(random_() % n); }
  bool chance(std::uint32_t n) { return below(n) == 0; }

  IpAddress address(bool ipv6) {
    if (!ipv6) return Ipv4Address{0x0a000000 | below(3) << 16 | below(3) << 8 | below(4)};
    return Ipv6Address{0x20010db8'00000000ULL | below(3), std::uint64_t{below(2)} << 63 | below(4)};
  }
  /// One of few addresses, so that SAs, templates and packets in transport mode coincide.
  IpAddress endpoint(bool ipv6) {
    if (!ipv6) return Ipv4Address{0x0a000000 | below(2)};
    return Ipv6Address{0x20010db8'00000000ULL, below(2)};
  }
  /// All zeros.
  static IpAddress any_address(bool ipv6) { return ipv6 ? IpAddress{Ipv6Address{}} : IpAddress{Ipv4Address{}}; }
  IpPrefix prefix(bool ipv6) {
    const IpAddress of = address(ipv6);
    if (const auto* const v4 = std::get_if<Ipv4Address>(&of)) {
      constexpr std::uint8_t kLengths[] = {0, 8, 15, 16, 24, 30, 31, 32};
      const std::uint8_t length = kLengths[below(8)];
      return Ipv4Prefix{{v4->bits & ipv4_mask(length)}, length};
    }
    const auto& v6 = std::get<Ipv6Address>(of);
    constexpr std::uint8_t kLengths[] = {0, 32, 63, 64, 65, 126, 127, 128};
    const std::uint8_t length = kLengths[below(8)];
    const Ipv6Address mask = ipv6_mask(length);
    return Ipv6Prefix{{v6.high & mask.high, v6.low & mask.low}, length};
  }
  std::uint8_t protocol() {
    constexpr std::uint8_t kProtocols[] = {ip_protocol::kTcp, ip_protocol::kUdp, ip_protocol::kSctp, ip_protocol::kIcmp,
                                           ip_protocol::kIcmpv6};
    return kProtocols[below(5)];
  }
  std::uint16_t port() { return static_cast<std::uint16_t>(below(3)); }

  Selector selector() {
    const bool ipv6 = chance(2);
    Selector selector;
    selector.source = prefix(ipv6);
    selector.destination = prefix(ipv6);
    if (chance(3)) return selector;
    selector.protocol = protocol();
    if (chance(3)) selector.source_port = port();
    if (chance(3)) selector.destination_port = port();
    return selector;
  }
  std::vector<SecurityAssociation> states(std::size_t count) {
    std::vector<SecurityAssociation> states(count);
    for (std::size_t i = 0; i < count; ++i) {
      SecurityAssociation& sa = states[i];
      const bool ipv6 = chance(2);
      sa.source = endpoint(ipv6);
      sa.destination = endpoint(ipv6);
      sa.spi = 256 + static_cast<std::uint32_t>(i);
      sa.reqid = below(3);
      sa.mode = chance(3) ? Mode::transport : Mode::tunnel;
      if (sa.mode == Mode::transport && chance(3)) sa.source = any_address(ipv6);
      if (chance(4)) sa.selector = selector();
      if (chance(2)) sa.lifetimes.added = below(4);
      if (chance(8)) sa.direction = chance(2) ? Direction::in : Direction::out;
    }
    return states;
  }
  std::vector<Policy> policies(std::size_t count) {
    std::vector<Policy> policies(count);
    for (Policy& policy : policies) {
      constexpr Direction kDirections[] = {Direction::in, Direction::out, Direction::forward};
      policy.direction = kDirections[below(3)];
      policy.selector = selector();
      if (chance(6)) policy.action = PolicyAction::block;
      if (chance(5)) continue;
      Template wanted;
      const bool ipv6 = chance(2);
      wanted.source = chance(4) ? any_address(ipv6) : endpoint(ipv6);
      wanted.destination = chance(4) ? any_address(ipv6) : endpoint(ipv6);
      wanted.reqid = below(3);
      if (chance(8)) wanted.spi = 256 + below(20);
      wanted.mode = chance(3) ? Mode::transport : Mode::tunnel;
      wanted.optional = chance(4);
      policy.templates.push_back(wanted);
    }
    return policies;
  }
  Flow flow() {
    const bool ipv6 = chance(2);
    Flow flow;
    const bool between_endpoints = chance(2);
    flow.source = between_endpoints ? endpoint(ipv6) : address(ipv6);
    flow.destination = between_endpoints ? endpoint(ipv6) : address(ipv6);
    flow.protocol = chance(8) ? std::uint8_t{89} : protocol();
    if (flow.protocol == ip_protocol::kIcmp || flow.protocol == ip_protocol::kIcmpv6) {
      flow.protocol = ipv6 ? ip_protocol::kIcmpv6 : ip_protocol::kIcmp;
    }
    const bool fragment = chance(6);
    penstock::testing::PacketBuilder builder = penstock::testing::packet().eth();
    if (ipv6) {
      builder.ipv6(to_string(flow.source), to_string(flow.destination));
      if (fragment) builder.fragment6(chance(2) ? 1 : 8);
    } else {
      builder.ipv4(to_string(flow.source), to_string(flow.destination), 64, {},
                   static_cast<std::uint16_t>(fragment ? (chance(2) ? 0x2000 : 1) : 0));
    }
    const std::uint16_t first = port(), second = port();
    switch (flow.protocol) {
      case ip_protocol::kTcp: builder.tcp(first, second); break;
      case ip_protocol::kUdp: builder.udp(first, second); break;
      case ip_protocol::kSctp: builder.sctp(first, second); break;
      case 89: builder.protocol(89).raw(penstock::testing::Bytes(20)); break;
      default: builder.icmp(static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(second));
    }
    if (!fragment && flow.protocol != 89) {
      flow.first = first;
      flow.second = second;
    }
    flow.frame = builder.bytes();
    return flow;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace penstock::ipsec
