// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Everything but the states of TCP, compared with the kernel's tracking: UDP, ICMP and its errors, other protocols,
// extension headers, wrong lengths and checksums.

#include <unistd.h>

#include "conntrack/testing/kernel_comparison.h"

namespace penstock::conntrack {
namespace {

/// Packets among a few hosts, so that many belong together.
class Packets {
 public:
  Packets(Random& random, bool with_udp_lite) : random_(random), with_udp_lite_(with_udp_lite) {}

  Packet next() {
    const Ends ends = one_pair();
    Packet packet = one(ends);
    if (random_.one_in(12)) damage(packet);
    if (packet[0] >> 4 == 6 && random_.one_in(6)) insert_extension(packet);
    recent_.push_back(packet);
    if (recent_.size() > kRecent) recent_.pop_front();
    return packet;
  }

 private:
  static constexpr std::size_t kRecent = 30;

  Ends one_pair() {
    constexpr std::array<const char*, 3> kV4{"10.1.0.1", "10.2.0.1", "10.3.0.1"};
    constexpr std::array<const char*, 3> kV6{"2001:db8::1", "2001:db8:1::1", "2001:db8:2::1"};
    const auto& hosts = random_.one_in(2) ? kV4 : kV6;
    const std::uint32_t from = random_.below(3);
    const std::uint32_t to = random_.one_in(20) ? from : (from + 1 + random_.below(2)) % 3;
    return {hosts[from], hosts[to], static_cast<std::uint16_t>(1 + random_.below(2)),
            static_cast<std::uint16_t>(1 + random_.below(2))};
  }

  Packet one(const Ends& ends) {
    switch (random_.below(9)) {
      case 0: return udp_packet(ends, random_.below(20));
      case 1: return udp_packet(ends, 12, ip_protocol::kUdp, static_cast<int>(random_.below(30)));
      case 2:
        return udp_packet(ends, 12, with_udp_lite_ ? ip_protocol::kUdpLite : ip_protocol::kUdp,
                          static_cast<int>(random_.below(30)));
      case 3: return gre(ends);
      case 4:
        return ip_packet(ends,
                         random_.of(std::array<std::uint8_t, 10>{ip_protocol::kIcmp, ip_protocol::kIcmpv6, 89, 4, 41,
                                                                 50, 33, 59, ip_protocol::kUdp, ip_protocol::kTcp}),
                         Packet(random_.below(24), static_cast<std::uint8_t>(random_.below(3))));
      case 5:
      case 6: return echo(ends);
      default: return error(ends);
    }
  }

  Packet echo(const Ends& ends) {
    std::uint8_t type = random_.of(ends.is_v6() ? std::array<std::uint8_t, 4>{128, 128, 129, 129}
                                                : std::array<std::uint8_t, 4>{8, 8, 0, 0});
    if (random_.one_in(3)) type = static_cast<std::uint8_t>(ends.is_v6() ? 126 + random_.below(30) : random_.below(22));
    return icmp_packet(ends, type, static_cast<std::uint8_t>(random_.one_in(8) ? 1 : 0),
                       static_cast<std::uint16_t>(random_.below(2)));
  }

  /// About a packet of before, mostly to its sender.
  Packet error(const Ends& ends) {
    if (recent_.empty()) return echo(ends);
    Packet quoted = recent_[random_.below(static_cast<std::uint32_t>(recent_.size()))];
    const bool v6 = quoted[0] >> 4 == 6;
    const std::string sender = v6 ? to_string(ParsedPacket(quoted).view().ipv6().source_address())
                                  : to_string(Ipv4Address{ParsedPacket(quoted).view().ipv4().source.value()});
    if (random_.one_in(4)) quoted.resize(random_.below(static_cast<std::uint32_t>(quoted.size())));
    if (random_.one_in(6) && !quoted.empty()) {
      quoted[random_.below(std::min<std::uint32_t>(44, static_cast<std::uint32_t>(quoted.size())))] ^=
          static_cast<std::uint8_t>(random_.one_in(2) ? 1U << random_.below(8) : random_.any());
    }
    const Ends to{v6 ? "2001:db8:2::1" : "10.3.0.1",
                  v6 == ends.is_v6() && random_.one_in(4) ? ends.destination : sender, 0, 0};
    const std::uint8_t type = random_.of(v6 ? std::array<std::uint8_t, 6>{1, 2, 3, 4, 5, 127}
                                            : std::array<std::uint8_t, 6>{3, 4, 5, 11, 12, 3});
    return icmp_packet(to, type, static_cast<std::uint8_t>(random_.below(3)), 0, quoted);
  }

  Packet gre(const Ends& ends) {
    Packet transport(4 + random_.below(3) * 4);
    transport[1] = static_cast<std::uint8_t>(random_.below(3));  // version
    put_be16(transport, 2, random_.one_in(3) ? 0x0800 : 0x880b);
    if (transport.size() >= 8) transport[7] = static_cast<std::uint8_t>(random_.below(2));
    return ip_packet(ends, ip_protocol::kGre, transport);
  }

  /// Makes a checksum or a length wrong, or leaves the checksum out.
  void damage(Packet& packet) {
    const std::size_t header = header_length_of(packet[0] >> 4 == 6);
    if (packet.size() < header + 8) return;
    if (random_.one_in(2)) {
      packet[header + random_.below(static_cast<std::uint32_t>(packet.size() - header))] ^= 0x10;
    } else {
      put_be16(packet, header + 6, 0);  // UDP's checksum
    }
  }

  void insert_extension(Packet& packet) {
    // Not a fragment without data, which the kernel drops before it tracks.
    const bool empty = packet.size() == sizeof(Ipv6Header);
    const std::uint8_t kind = empty ? ip_protocol::kAh
                                    : random_.of(std::array<std::uint8_t, 3>{ip_protocol::kDestinationOptions,
                                                                             ip_protocol::kFragment, ip_protocol::kAh});
    Packet extension(kind == ip_protocol::kAh ? 16 : 8);
    extension[0] = packet[6];
    if (kind == ip_protocol::kAh) extension[1] = 2;
    if (kind == ip_protocol::kDestinationOptions) extension[2] = 1, extension[3] = 4;  // PadN
    packet[6] = kind;
    packet.insert(packet.begin() + sizeof(Ipv6Header), extension.begin(), extension.end());
    put_be16(packet, 4, static_cast<std::uint32_t>(packet.size() - sizeof(Ipv6Header)));
  }

  Random& random_;
  bool with_udp_lite_;
  std::deque<Packet> recent_;
};

TEST_F(KernelOracle, TracksOtherProtocolsAlike) {
  Random random(seed + 10);
  // Few at a time, which takes far less than the two seconds after which UDP becomes a stream: the kernel and we may
  // disagree about a packet at that moment.
  constexpr std::size_t kPackets = 1000;
  std::array<std::size_t, 4> seen{};
  for (std::uint64_t round = 0; round < 20 * rounds; ++round) {
    // Linux (6.18) takes UDP's number for that of UDP-Lite in the pseudo-header, and thus finds every checksum of
    // UDP-Lite wrong.
    const bool check = round % 2 == 0;
    Comparison comparison(*kernel, {.most_connections = kPackets, .checksum = check});
    Packets packets(random, !check);
    for (std::size_t i = 0; i < kPackets; ++i) {
      if (!comparison.send(packets.next())) FAIL() << "seed " << seed << ", round " << round << ", packet " << i;
    }
    for (std::size_t state = 0; state < seen.size(); ++state) seen[state] += comparison.seen(static_cast<State>(state));
  }
  for (const std::size_t count : seen) EXPECT_GT(count, 100);
  fmt::print("{} packets: {} invalid, {} new, {} established, {} related\n", 20 * rounds * kPackets, seen[0], seen[1],
             seen[2], seen[3]);
}

TEST_F(KernelOracle, UdpBecomesAStreamAlike) {
  Comparison comparison(*kernel, {});
  const Ends a, b{"2001:db8::1", "2001:db8:1::1", 1000, 53};
  for (const Ends& ends : {a, b}) {
    EXPECT_TRUE(comparison.send(udp_packet(ends)));
    EXPECT_TRUE(comparison.send(udp_packet(ends.reversed())));
    EXPECT_TRUE(comparison.send(udp_packet(ends)));
  }
  usleep(2'100'000);
  for (const Ends& ends : {a, b}) {
    EXPECT_TRUE(comparison.send(udp_packet(ends)));
    EXPECT_TRUE(comparison.send(udp_packet(ends.reversed())));
  }
}

}  // namespace
}  // namespace penstock::conntrack
