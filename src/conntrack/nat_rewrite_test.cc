// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a translation writes to packets, byte for byte: compared with packets that were made with the other addresses.

#include <gtest/gtest.h>

#include <array>

#include "conntrack/nat_core.h"
#include "conntrack/testing/sctp_packet.h"
#include "conntrack/testing/translating_table.h"

namespace penstock::conntrack {
namespace {

const Ends kBefore{"10.1.0.1", "10.2.0.1", 1000, 80}, kAfter{"192.0.2.7", "198.51.100.9", 40000, 8080};
const Ends kBeforeV6{"2001:db8::1", "2001:db8:2::1", 1000, 80}, kAfterV6{"2001:db8:1::7", "2001:db8:f::9", 40000, 8080};

Rewrite rewrite_to(const Ends& ends, std::uint8_t sides = Rewrite::kBoth) {
  return {.source = address_of(ends.source),
          .destination = address_of(ends.destination),
          .source_port = ends.source_port,
          .destination_port = ends.destination_port,
          .sides = sides};
}

/// Nothing if it refuses.
std::optional<Packet> rewritten(const Packet& packet, const Rewrite& to, std::uint32_t wire_length = 0) {
  ParsedPacket parsed(packet, wire_length);
  if (rewrite(parsed.view(), to)) return parsed.bytes;
  EXPECT_EQ(parsed.bytes, packet) << "a packet that is refused is unchanged";
  return std::nullopt;
}

Packet sctp_packet(const Ends& ends, std::size_t payload) { return sctp_packet(ends, Packet(payload, 's')); }

TEST(NatRewrite, WritesAddressesPortsAndChecksumsOfAllProtocols) {
  for (const auto& [before, after] : {std::pair{kBefore, kAfter}, std::pair{kBeforeV6, kAfterV6}}) {
    for (const std::uint8_t sides : {Rewrite::kSource, Rewrite::kDestination, Rewrite::kBoth}) {
      Ends expected = before;
      if ((sides & Rewrite::kSource) != 0) expected.source = after.source, expected.source_port = after.source_port;
      if ((sides & Rewrite::kDestination) != 0)
        expected.destination = after.destination, expected.destination_port = after.destination_port;
      const Rewrite to = rewrite_to(after, sides);
      const TcpFields fields{.sequence = 7, .ack = 9, .payload = 33};
      EXPECT_EQ(rewritten(tcp_packet(before, fields), to), tcp_packet(expected, fields));
      EXPECT_EQ(rewritten(udp_packet(before, 11), to), udp_packet(expected, 11));
      EXPECT_EQ(rewritten(udp_packet(before, 11, ip_protocol::kUdpLite), to),
                udp_packet(expected, 11, ip_protocol::kUdpLite));
      for (const std::size_t payload : std::to_array<std::size_t>({0, 1, 4, 99, 1400}))
        EXPECT_EQ(rewritten(sctp_packet(before, payload), to), sctp_packet(expected, payload));
      EXPECT_EQ(rewritten(ip_packet(before, 89, Packet(30, 1)), to), ip_packet(expected, 89, Packet(30, 1)));
      const std::uint8_t echo = before.is_v6() ? 128 : 8;
      EXPECT_EQ(rewritten(icmp_packet(before, echo, 0, 5), to), icmp_packet(expected, echo, 0, 40000));
      EXPECT_EQ(rewritten(tcp_packet(before, fields), rewrite_to(before, sides)), tcp_packet(before, fields));
    }
  }
}

TEST(NatRewrite, WritesQuotedPackets) {
  for (const auto& [before, after] : {std::pair{kBefore, kAfter}, std::pair{kBeforeV6, kAfterV6}}) {
    const std::uint8_t unreachable = before.is_v6() ? 1 : 3, echo = before.is_v6() ? 128 : 8;
    for (const std::uint8_t sides : {Rewrite::kSource, Rewrite::kDestination, Rewrite::kBoth}) {
      Ends outer = before;
      if ((sides & Rewrite::kSource) != 0) outer.source = after.source, outer.source_port = after.source_port;
      if ((sides & Rewrite::kDestination) != 0)
        outer.destination = after.destination, outer.destination_port = after.destination_port;
      Rewrite to = rewrite_to(after, sides);
      to.is_error = true;
      const auto error = [&](const Ends& ends, Packet quoted, std::size_t most) {
        if (quoted.size() > most) quoted.resize(most);
        return icmp_packet(ends, unreachable, 0, 0, quoted);
      };
      const std::size_t header = header_length_of(before.is_v6());
      for (const std::size_t most : {header + 8, header + 20, header + 60}) {
        EXPECT_EQ(rewritten(error(before, udp_packet(before.reversed(), 30), most), to),
                  error(outer, udp_packet(outer.reversed(), 30), most));
        EXPECT_EQ(rewritten(error(before, sctp_packet(before.reversed(), 30), most), to)->size(),
                  error(outer, sctp_packet(outer.reversed(), 30), most).size());
        // A checksum beyond the end of the quotation is not there to be changed.
        Packet was = tcp_packet(before.reversed(), {.payload = 30}),
               will_be = tcp_packet(outer.reversed(), {.payload = 30});
        if (most < header + 20) {
          was.resize(most);
          will_be.resize(most);
        }
        EXPECT_EQ(rewritten(error(before, was, most), to), error(outer, will_be, most));
      }
      Rewrite identifier = to;
      identifier.source_port = identifier.destination_port = 777;
      EXPECT_EQ(rewritten(error(before, icmp_packet(before.reversed(), echo, 0, 5), 100), identifier),
                error(outer, icmp_packet(outer.reversed(), echo, 0, 777), 100));
      EXPECT_FALSE(rewritten(error(before, udp_packet(before.reversed(), 30), header + 7), to));
      EXPECT_FALSE(rewritten(error(before, udp_packet(before.reversed(), 30), 10), to));
      EXPECT_FALSE(rewritten(icmp_packet(before, before.is_v6() ? 137 : 5, 0, 0, udp_packet(before.reversed())), to));
    }
  }
}

TEST(NatRewrite, KeepsAChecksumOfUdpThatIsNotThere) {
  Packet packet = udp_packet(kBefore), expected = udp_packet(kAfter);
  put_be16(packet, 26, 0);
  put_be16(expected, 26, 0);
  EXPECT_EQ(rewritten(packet, rewrite_to(kAfter)), expected);
}

TEST(NatRewrite, NeverWritesAChecksumOfUdpThatMeansNone) {
  // The port that makes the sum zero.
  std::uint32_t zeros = 0;
  for (std::uint32_t port = 0; port < 0x10000; ++port) {
    Ends ends = kAfter;
    ends.source_port = static_cast<std::uint16_t>(port);
    const std::optional<Packet> packet = rewritten(udp_packet(kBefore), rewrite_to(ends));
    ASSERT_TRUE(packet);
    ASSERT_FALSE((*packet)[26] == 0 && (*packet)[27] == 0) << port;
    if ((*packet)[26] == 0xff && (*packet)[27] == 0xff) ++zeros;
    if (port % 64 == 0) {
      ASSERT_EQ(*packet, udp_packet(ends));
    }
  }
  EXPECT_EQ(zeros, 1);
}

TEST(NatRewrite, WrongChecksumsStayWrong) {
  Packet packet = tcp_packet(kBefore, {}), expected = tcp_packet(kAfter, {});
  for (Packet* const each : {&packet, &expected}) (*each)[20 + 8] ^= 0x40;
  EXPECT_EQ(rewritten(packet, rewrite_to(kAfter)), expected);
}

TEST(NatRewrite, TruncatedCapturesAreChangedAsFarAsTheyGo) {
  const Packet before = tcp_packet(kBefore, {.payload = 500}), after = tcp_packet(kAfter, {.payload = 500});
  const auto first = [](const Packet& packet, std::size_t bytes) {
    return Packet(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(bytes));
  };
  EXPECT_EQ(rewritten(first(before, 40), rewrite_to(kAfter), 540), first(after, 40));
  EXPECT_FALSE(rewritten(first(before, 39), rewrite_to(kAfter), 540));
  const Packet sctp = sctp_packet(kBefore, 500);
  EXPECT_EQ(rewritten(first(sctp, 32), rewrite_to(kAfter), static_cast<std::uint32_t>(sctp.size())),
            first(sctp_packet(kAfter, 500), 32));
  Rewrite error = rewrite_to(kAfter);
  error.is_error = true;
  const Packet quoting = icmp_packet(kBefore, 3, 0, 0, tcp_packet(kBefore.reversed(), {.payload = 30}));
  EXPECT_FALSE(rewritten(first(quoting, 28 + 20 + 19), error, static_cast<std::uint32_t>(quoting.size())))
      << "a checksum that was not captured";
  EXPECT_EQ(rewritten(first(quoting, 28 + 20 + 20), error, static_cast<std::uint32_t>(quoting.size())),
            first(icmp_packet(kAfter, 3, 0, 0, tcp_packet(kAfter.reversed(), {.payload = 30})), 28 + 20 + 20));
}

TEST(NatRewrite, OptionsAndExtensionHeadersAreSkipped) {
  const auto v4 = [](const Ends& ends) {
    Packet packet = udp_packet(ends);
    packet.insert(packet.begin() + 20, {1, 1, 1, 0});
    packet[0] = 0x46;
    put_be16(packet, 2, static_cast<std::uint32_t>(packet.size()));
    put_be16(packet, 10, 0);
    put_be16(packet, 10, testing::slow_checksum(packet, 0, 24));
    return packet;
  };
  const auto v6 = [](const Ends& ends, std::uint8_t kind, std::uint8_t fragment) {
    Packet packet = udp_packet(ends);
    packet.insert(packet.begin() + 40, {packet[6], 0, 0, fragment, 0, 0, 0, 0});
    packet[6] = kind;
    put_be16(packet, 4, static_cast<std::uint32_t>(packet.size() - 40));
    return packet;
  };
  EXPECT_EQ(rewritten(v4(kBefore), rewrite_to(kAfter)), v4(kAfter));
  for (const std::uint8_t kind : {ip_protocol::kDestinationOptions, ip_protocol::kHopByHop, ip_protocol::kFragment}) {
    EXPECT_EQ(rewritten(v6(kBeforeV6, kind, 0), rewrite_to(kAfterV6)), v6(kAfterV6, kind, 0));
  }
  const auto first_fragment = [&](const Ends& ends) { return v6(ends, ip_protocol::kFragment, 1); };
  EXPECT_EQ(rewritten(first_fragment(kBeforeV6), rewrite_to(kAfterV6)), first_fragment(kAfterV6));
  Packet later = v6(kBeforeV6, ip_protocol::kFragment, 8), expected = later;
  const Packet addresses = udp_packet(kAfterV6);
  std::copy(addresses.begin() + 8, addresses.begin() + 40, expected.begin() + 8);
  EXPECT_EQ(rewritten(later, rewrite_to(kAfterV6)), expected) << "only addresses of later fragments";
}

TEST(NatRewrite, FirstFragmentsOfSctpKeepTheirPortsOrAreRefused) {
  Packet first = sctp_packet(kBefore, 36);
  put_be16(first, 6, 0x2000);
  EXPECT_FALSE(rewritten(first, rewrite_to(kAfter)));
  Ends same_ports = kAfter;
  same_ports.source_port = kBefore.source_port;
  same_ports.destination_port = kBefore.destination_port;
  EXPECT_TRUE(rewritten(first, rewrite_to(same_ports)));
}

}  // namespace
}  // namespace penstock::conntrack
