// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Packets of all kinds, intact and damaged, from a seed: every link type, tags, options, extension headers, transports,
// tunnels; flipped bits, frames cut on the wire or by the capture. Addresses and ports come from small sets, so that
// rules and routes match them.

#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "packet/flow_hash.h"
#include "packet/packet.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::property {

using testing::Bytes;

/// A frame with its descriptor, parsed and hashed as the shared stack does it.
struct Packet {
  Bytes bytes;
  PacketDescriptor descriptor;

  Packet(Bytes frame, std::uint32_t wire_length, LinkType link) : bytes(std::move(frame)) {
    descriptor.length = static_cast<std::uint32_t>(bytes.size());
    descriptor.wire_length = std::max(wire_length, descriptor.length);
    descriptor.link_type = link;
    bytes.reserve(bytes.size() + 1);  // the frame of a packet is never a null pointer
    prepare();
  }
  void prepare() {
    parse(view());
    descriptor.flow_hash = flow_hash(view());
  }
  [[nodiscard]] PacketView view() { return {bytes.data(), &descriptor}; }
};

class RandomPackets {
 public:
  explicit RandomPackets(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] Packet next() {
    const LinkType link = one_in(3) ? static_cast<LinkType>(below(8)) : LinkType::ethernet;
    Bytes frame = link == LinkType::ethernet ? ethernet() : behind_link_header(link);
    if (one_in(4)) damage(frame);
    auto wire_length = static_cast<std::uint32_t>(frame.size());
    if (one_in(8)) frame.resize(below(frame.size() + 1));
    if (one_in(8)) wire_length = static_cast<std::uint32_t>(frame.size());
    Packet packet(std::move(frame), wire_length, link);
    packet.descriptor.timestamp_ns = random_();
    packet.descriptor.mark = word();
    packet.descriptor.in_port = static_cast<PortIndex>(below(3));
    if (one_in(3)) packet.descriptor.verdict = Verdict::forward(static_cast<PortIndex>(below(3)));
    return packet;
  }

  [[nodiscard]] std::uint32_t word() { return static_cast<std::uint32_t>(random_()); }
  [[nodiscard]] std::size_t below(std::size_t n) { return random_() % n; }
  [[nodiscard]] bool one_in(std::size_t n) { return below(n) == 0; }
  [[nodiscard]] Bytes some_bytes(std::size_t n) {
    Bytes bytes(n);
    for (auto& b : bytes) b = static_cast<std::uint8_t>(random_());
    return bytes;
  }

 private:
  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }
  std::uint16_t a_port() { return one_of<std::uint16_t>({22, 53, 80, 443, 4789, 1024, 40000}); }
  std::string address4() {
    if (one_in(5)) return to_string(Ipv4Address{word()});
    return one_of<const char*>({"10.0.0.1", "10.1.2.3", "10.9.9.9", "192.168.1.7", "8.8.8.8", "8.1.2.3", "127.0.0.1",
                                "224.0.0.5", "255.255.255.255", "0.1.2.3", "172.16.0.9"});
  }
  std::string address6() {
    if (one_in(5)) return to_string(Ipv6Address{random_(), random_()});
    return one_of<const char*>(
        {"2001:db8::1", "2001:db8:1::2", "2001:db9::3", "fe80::1", "::1", "::", "ff02::1", "::ffff:10.0.0.1"});
  }

  Bytes ethernet() {
    testing::PacketBuilder b;
    MacAddress to{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(below(4))}};
    if (one_in(10)) to.bytes[0] = 0x33;
    b.eth(to);
    for (std::size_t tags = one_in(4) ? below(one_in(8) ? 11 : 3) : 0; tags > 0; --tags) {
      b.vlan(static_cast<std::uint16_t>(random_()), one_of({ether_type::kVlan, ether_type::kQinQ}));
    }
    if (one_in(15)) return b.ether_type(ether_type::kArp).raw(some_bytes(28)).padded_to(60).bytes();
    if (one_in(20)) return b.ether_type(0x88cc).raw(some_bytes(below(60))).bytes();
    network(b);
    if (one_in(3)) b.padded_to(60 + below(60));
    return b.bytes();
  }

  void network(testing::PacketBuilder& b) {
    const auto hops = one_of<std::uint8_t>({0, 1, 2, 64, 255});
    if (!one_in(3)) {
      const Bytes options = one_in(5) ? some_bytes(below(11) * 4) : Bytes{};
      const auto fragment = one_in(6) ? static_cast<std::uint16_t>(random_()) : std::uint16_t{0};
      b.ipv4(address4(), address4(), hops, options, fragment);
    } else {
      b.ipv6(address6(), address6(), hops);
      for (std::size_t n = one_in(3) ? below(4) : 0; n > 0; --n) {
        b.extension(
            one_of({ip_protocol::kHopByHop, ip_protocol::kRouting, ip_protocol::kDestinationOptions, ip_protocol::kAh}),
            static_cast<unsigned>(1 + below(3)));
      }
      if (one_in(6)) b.fragment6(one_in(2) ? static_cast<std::uint16_t>(random_()) : std::uint16_t{0});
    }
    transport(b);
  }
  void transport(testing::PacketBuilder& b) {
    switch (below(10)) {
      case 0:
      case 1:
      case 2:
        b.tcp(a_port(), a_port(), static_cast<std::uint8_t>(random_()),
              one_in(3) ? some_bytes(below(11) * 4) : Bytes{});
        break;
      case 3:
      case 4:
      case 5: b.udp(a_port(), a_port()); break;
      case 6: b.sctp(a_port(), a_port()); break;
      case 7: b.icmp(one_of<std::uint8_t>({0, 3, 8, 128, 135}), static_cast<std::uint8_t>(below(5))); break;
      case 8:
        b.protocol(one_of({ip_protocol::kGre, ip_protocol::kEsp, ip_protocol::kIpv4, ip_protocol::kIpv6,
                           ip_protocol::kUdpLite, ip_protocol::kNone}));
        break;
      default: b.protocol(static_cast<std::uint8_t>(random_())); break;
    }
    b.raw(some_bytes(one_in(4) ? below(3) : below(120)));
  }

  Bytes behind_link_header(LinkType link) {
    testing::PacketBuilder b;
    network(b);
    const Bytes ip = b.bytes();
    const bool v6 = !ip.empty() && ip[0] >> 4 == 6;
    const std::uint8_t high = v6 ? 0x86 : 0x08, low = v6 ? 0xdd : 0x00;
    Bytes header;
    switch (link) {
      case LinkType::ethernet:
      case LinkType::raw_ip: break;
      case LinkType::null_host: header = {static_cast<std::uint8_t>(v6 ? 30 : 2), 0, 0, 0}; break;
      case LinkType::loop: header = {0, 0, 0, static_cast<std::uint8_t>(v6 ? 10 : 2)}; break;
      case LinkType::linux_sll:
        header = some_bytes(14);
        header[0] = 0;
        header[1] = static_cast<std::uint8_t>(below(5));  // <linux/if_packet.h>: to this host, broadcast, multicast …
        header.insert(header.end(), {high, low});
        break;
      case LinkType::linux_sll2:
        header = some_bytes(20);
        header[10] = static_cast<std::uint8_t>(below(5));
        header[0] = high;
        header[1] = low;
        break;
      case LinkType::ppp: header = {0xff, 0x03, 0x00, static_cast<std::uint8_t>(v6 ? 0x57 : 0x21)}; break;
      case LinkType::cisco_hdlc: header = {0x0f, 0x00, high, low}; break;
    }
    header.insert(header.end(), ip.begin(), ip.end());
    return header;
  }

  void damage(Bytes& frame) {
    for (std::size_t n = 1 + below(3); n > 0 && !frame.empty(); --n) {
      frame[below(std::min<std::size_t>(frame.size(), 70))] = static_cast<std::uint8_t>(random_());
    }
  }

  std::mt19937_64 random_;
};

}  // namespace penstock::property
