// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Conversations for tests of NAT: packets of hosts inside and outside, answers to what has left the router, and errors
// about it.

#pragma once

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "conntrack/testing/kernel_comparison.h"
#include "conntrack/testing/nat_kernel.h"

namespace penstock::conntrack {

/// Packets of hosts inside and outside, and answers to what has left the router.
class Traffic {
 public:
  Traffic(Random& random, bool may_close) : random_(random), may_close_(may_close) {}

  std::pair<Side, Packet> next() {
    while (true) {
      std::pair<Side, Packet> next = any();
      // The router takes no packets from itself.
      Tuple addresses;
      read_addresses(ParsedPacket(next.second).view(), addresses);
      const unsigned family = addresses.ip_version == 4 ? 0 : 1;
      if (addresses.source != address_of(kRouterOutside[family])) return next;
    }
  }
  void add(Side side, const Packet& input, const NatKernel::Output& output) {
    inputs_.emplace_back(side, input);
    outputs_.emplace_back(output.side, output.packet);
    constexpr std::size_t kRecent = 40;
    if (inputs_.size() > kRecent) inputs_.pop_front();
    if (outputs_.size() > kRecent) outputs_.pop_front();
  }

 private:
  std::pair<Side, Packet> any() {
    if (outputs_.empty() || random_.one_in(3)) return begin();
    const auto& [side, packet] = outputs_[random_.below(static_cast<std::uint32_t>(outputs_.size()))];
    switch (random_.below(6)) {
      case 0: return {side, error_about(packet)};
      case 1: return inputs_[random_.below(static_cast<std::uint32_t>(inputs_.size()))];
      default: return {side, answer_to(packet)};
    }
  }

  std::pair<Side, Packet> begin() {
    const bool v6 = random_.one_in(2), from_inside = !random_.one_in(3);
    const std::string inside =
        v6 ? fmt::format("2001:db8::{}", 1 + random_.below(4)) : fmt::format("10.1.0.{}", 1 + random_.below(4));
    const std::string outside =
        v6 ? fmt::format("2001:db8:2::{}", 1 + random_.below(3)) : fmt::format("10.2.0.{}", 1 + random_.below(3));
    const std::string of_router =
        v6 ? fmt::format("2001:db8:1::{}", 1 + random_.below(3)) : fmt::format("198.51.100.{}", 1 + random_.below(3));
    Ends ends{from_inside ? inside : outside, from_inside ? outside : inside,
              random_.of(std::array<std::uint16_t, 6>{100, 511, 600, 1000, 1024, 50000}),
              random_.of(std::array<std::uint16_t, 3>{53, 80, 8080})};
    if (random_.one_in(from_inside ? 6 : 2)) ends.destination = of_router;
    return {from_inside ? Side::inside : Side::outside, one(ends)};
  }

  Packet one(const Ends& ends) {
    switch (random_.below(12)) {
      case 0:
      case 1: return icmp_packet(ends, ends.is_v6() ? 128 : random_.one_in(4) ? 13 : 8, 0, ends.source_port);
      case 2: return ip_packet(ends, random_.one_in(2) ? 89 : ip_protocol::kGre, Packet(12, 0));
      case 3: {
        Packet packet = udp_packet(ends, random_.below(30));
        if (!ends.is_v6()) put_be16(packet, 26, 0);  // without a checksum
        return packet;
      }
      case 4:
      case 5:
      case 6: return udp_packet(ends, random_.below(30));
      default:
        return tcp_packet(ends, {.flags = TcpHeader::kSyn, .sequence = random_.any(), .payload = random_.below(9)});
    }
  }

  Packet answer_to(const Packet& packet) {
    ParsedPacket parsed(packet);
    Transport transport;
    if (!read_transport(parsed.view(), transport)) return packet;
    const Ends ends = ends_of(transport.tuple).reversed();
    switch (transport.tuple.protocol) {
      case ip_protocol::kUdp: return udp_packet(ends, random_.below(30));
      case ip_protocol::kTcp: {
        const TcpHeader& tcp = parsed.view().tcp();
        const bool syn = (tcp.flags & TcpHeader::kSyn) != 0;
        TcpFields fields{.sequence = tcp.acknowledgment.value(),
                         .ack = tcp.sequence.value() + (syn ? 1U : 0U) + parsed.descriptor.layout.end -
                                parsed.descriptor.layout.payload_offset,
                         .payload = random_.below(20)};
        if (syn && tcp.flags == TcpHeader::kSyn) fields.flags |= TcpHeader::kSyn, fields.payload = 0;
        if (may_close_ && random_.one_in(4)) fields.flags |= random_.one_in(2) ? TcpHeader::kFin : TcpHeader::kRst;
        return tcp_packet(ends, fields);
      }
      case ip_protocol::kIcmp:
      case ip_protocol::kIcmpv6:
        if (const std::optional<Tuple> answer = inverse_of(transport.tuple)) {
          return icmp_packet(ends, static_cast<std::uint8_t>(answer->destination_port >> 8), 0,
                             transport.tuple.source_port);
        }
        return packet;
      default: return ip_packet(ends, transport.tuple.protocol, Packet(12, 0));
    }
  }

  /// From a router or from its receiver, mostly to its sender.
  Packet error_about(Packet packet) {
    ParsedPacket parsed(packet);
    Transport transport;
    if (!read_transport(parsed.view(), transport)) return packet;
    Ends ends = ends_of(transport.tuple).reversed();
    if (random_.one_in(2)) ends.source = ends.is_v6() ? "2001:db8:8::8" : "10.8.0.8";
    if (random_.one_in(10)) std::swap(ends.source, ends.destination);
    const std::size_t header = header_length_of(ends.is_v6());
    if (random_.one_in(2)) packet.resize(std::min(packet.size(), header + random_.below(30)));
    const std::uint8_t type = random_.of(ends.is_v6() ? std::array<std::uint8_t, 6>{1, 2, 3, 4, 1, 137}
                                                      : std::array<std::uint8_t, 6>{3, 4, 5, 11, 12, 3});
    return icmp_packet(ends, type, 0, 0, packet);
  }

  static Ends ends_of(const Tuple& tuple) {
    const auto address = [&](const Ipv6Address& of) {
      return tuple.ip_version == 4 ? to_string(Ipv4Address{static_cast<std::uint32_t>(of.low)}) : to_string(of);
    };
    return {address(tuple.source), address(tuple.destination), tuple.source_port, tuple.destination_port};
  }

  Random& random_;
  bool may_close_;
  std::deque<std::pair<Side, Packet>> inputs_, outputs_;
};

}  // namespace penstock::conntrack
