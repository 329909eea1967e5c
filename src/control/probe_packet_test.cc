// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/probe_packet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "packet/testing/packet_builder.h"

namespace penstock::control {
namespace {

using testing::Bytes;
using ::testing::HasSubstr;
using testing::packet;

/// The frame that another builder, with its own checksums, makes; with the id and flags that hosts use.
Bytes like_a_host(Bytes frame) {
  if (frame[14] >> 4 != 4) return frame;
  frame[18] = 0;
  frame[19] = 1;
  frame[20] = 0x40;
  return testing::with_right_checksums(std::move(frame));
}

Bytes probe(std::string_view tuple, std::string_view flags = "", std::optional<std::uint64_t> length = {}) {
  auto frame = make_probe({tuple, flags, length});
  EXPECT_TRUE(frame) << to_string(frame.error());
  return frame ? *frame : Bytes();
}

std::string mistake(std::string_view tuple, std::string_view flags = "", std::optional<std::uint64_t> length = {}) {
  const auto frame = make_probe({tuple, flags, length});
  return frame ? "none" : to_string(frame.error());
}

TEST(ProbePacket, HasTheHeadersThatAreAskedFor) {
  EXPECT_EQ(probe("udp 10.1.0.5:4242 192.0.2.7:443", "", 60),
            like_a_host(packet().eth().ipv4("10.1.0.5", "192.0.2.7").udp(4242, 443).raw(Bytes(18)).bytes()));
  EXPECT_EQ(probe("udp [2001:db8::1]:53  [2001:db8::2]:99"),
            packet().eth().ipv6("2001:db8::1", "2001:db8::2").udp(53, 99).bytes());
  EXPECT_EQ(probe("gre 10.1.0.5 192.0.2.7"),
            like_a_host(packet().eth().ipv4("10.1.0.5", "192.0.2.7").protocol(47).bytes()));
}

TEST(ProbePacket, HasRightTransportChecksums) {
  // Over header and pseudo-header, the sum is 0xffff: slow_checksum returns 0.
  const auto sum = [](const Bytes& frame, std::size_t transport, std::size_t addresses, std::size_t address_bytes) {
    const bool v4 = frame[14] >> 4 == 4;
    std::uint64_t pseudo = frame.size() - transport + frame[v4 ? 23 : 20];
    for (std::size_t i = addresses; i < addresses + address_bytes; i += 2) pseudo += frame[i] * 256U + frame[i + 1];
    return testing::slow_checksum(frame, transport, frame.size(), pseudo);
  };
  for (const std::uint64_t length : {54U, 55U, 1514U, 65'535U})
    EXPECT_EQ(sum(probe("tcp 10.1.0.5:1 192.0.2.7:2", "", length), 34, 26, 8), 0) << length;
  EXPECT_EQ(sum(probe("tcp [2001:db8::1]:1 [2001:db8::2]:2"), 54, 22, 32), 0);
  EXPECT_EQ(sum(probe("icmp6 fe80::1 fe80::2 135"), 54, 22, 32), 0);
  EXPECT_EQ(testing::slow_checksum(probe("icmp 10.0.0.1 10.0.0.2 3/1"), 34, 42), 0);
}

TEST(ProbePacket, HasTheFlagsThatAreAskedFor) {
  constexpr std::size_t kFlags = 47;
  const std::string tuple = "tcp 10.1.0.5:1 192.0.2.7:2";
  EXPECT_EQ(probe(tuple)[kFlags], TcpHeader::kSyn);
  EXPECT_EQ(probe(tuple, "syn,ack")[kFlags], TcpHeader::kSyn | TcpHeader::kAck);
  EXPECT_EQ(probe(tuple, "none")[kFlags], 0);
  EXPECT_EQ(probe("TCP 10.1.0.5:1 192.0.2.7:2", "SYN,Ack"), probe(tuple, "syn,ack")) << "in any case";
  EXPECT_THAT(mistake(tuple, "syn,ak"), HasSubstr("found 'ak'"));
  EXPECT_THAT(mistake(tuple, "syn,"), HasSubstr("unknown flag"));
  EXPECT_THAT(mistake("udp 10.1.0.5:1 192.0.2.7:2", "syn"), HasSubstr("only TCP has flags"));
}

TEST(ProbePacket, IsRefusedWithAReason) {
  for (const std::string text : {"", "tcp", "tcp 10.1.0.5:1"}) EXPECT_THAT(mistake(text), HasSubstr("not a packet"));
  EXPECT_THAT(mistake("tpc 10.1.0.5:1 192.0.2.7:2"), HasSubstr("unknown protocol: found 'tpc'"));
  EXPECT_THAT(mistake("256 10.1.0.5 192.0.2.7"), HasSubstr("unknown protocol"));
  EXPECT_THAT(mistake("tcp 10.1.0.5 192.0.2.7:2"), HasSubstr("not an address with a port: found '10.1.0.5'"));
  EXPECT_THAT(mistake("tcp 2001:db8::1 [2001:db8::2]:2"), HasSubstr("not an address with a port"));
  EXPECT_THAT(mistake("tcp 10.1.0.5:65536 192.0.2.7:2"), HasSubstr("not an address with a port"));
  EXPECT_THAT(mistake("esp 10.1.0.5:1 192.0.2.7"), HasSubstr("not an IP address: found '10.1.0.5:1'"));
  EXPECT_THAT(mistake("udp 10.1.0.5:1 [2001:db8::2]:2"), HasSubstr("different families"));
  EXPECT_THAT(mistake("icmp 2001:db8::1 2001:db8::2"), HasSubstr("expected icmp6"));
  EXPECT_THAT(mistake("icmp 10.0.0.1 10.0.0.2 3/256"), HasSubstr("wrong ICMP type"));
  EXPECT_THAT(mistake("icmp 10.0.0.1 10.0.0.2 3 1"), HasSubstr("unexpected word: found '1'"));
  EXPECT_THAT(mistake("udp 10.0.0.1:1 10.0.0.2:2 3"), HasSubstr("unexpected word: found '3'"));
  EXPECT_THAT(mistake("tcp 10.1.0.5:1 192.0.2.7:2", "", 53), HasSubstr("with its 54 of headers"));
  EXPECT_THAT(mistake("tcp 10.1.0.5:1 192.0.2.7:2", "", 65'536), HasSubstr("at most 65535"));
}

}  // namespace
}  // namespace penstock::control
