// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/match/scan_range_core.h"

#include <gtest/gtest.h>

#include <string>

#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::nids {
namespace {

using penstock::testing::packet;
using penstock::testing::PacketBuilder;

std::string scanned(const PacketBuilder& builder) {
  const auto frame = builder.bytes();
  const auto length = static_cast<std::uint32_t>(frame.size());
  const ScanRange range = scan_range(parse(frame.data(), length, length, LinkType::ethernet), length);
  return {frame.begin() + range.begin, frame.begin() + range.end};
}

PacketBuilder ip(std::uint16_t fragment = 0) { return packet().eth().ipv4("10.0.0.1", "10.0.0.2", 64, {}, fragment); }

TEST(ScanRange, IsThePayloadOfTcpAndUdpWithoutPadding) {
  EXPECT_EQ(scanned(ip().tcp(1, 2).payload("abc").padded_to(60)), "abc");
  EXPECT_EQ(scanned(ip().udp(1, 2).payload("abc").padded_to(60)), "abc");
  EXPECT_EQ(
      scanned(packet().eth().vlan(5).ipv6("2001:db8::1", "2001:db8::2").tcp(1, 2, 0, {1, 1, 1, 1}).payload("abc")),
      "abc");
  EXPECT_EQ(scanned(ip().tcp(1, 2)), "");
}

TEST(ScanRange, IsEverythingAfterTheNetworkHeaderForOtherTransports) {
  EXPECT_EQ(scanned(ip().icmp(8).payload("abc")).size(), 8U + 3);
  EXPECT_EQ(scanned(ip().protocol(99).payload("abc")), "abc");
  EXPECT_EQ(scanned(ip().sctp(1, 2).payload("abc")).size(), 12U + 3);
}

TEST(ScanRange, IsThePacketInATunnel) {
  const auto packet_inside = packet().ipv4("10.0.0.3", "10.0.0.4").tcp(1, 2).payload("abc").bytes();
  const std::string inside = scanned(ip().protocol(ip_protocol::kIpv4).raw(packet_inside));
  EXPECT_EQ(inside.size(), 20U + 20 + 3);
  EXPECT_TRUE(inside.ends_with("abc"));
}

TEST(ScanRange, IsAllThatAFragmentCarries) {
  constexpr std::uint16_t kMore = 0x2000;
  EXPECT_EQ(scanned(ip(kMore).tcp(1, 2).payload("abcd")).size(), 20U + 4);
  EXPECT_EQ(scanned(ip(kMore | 3).payload("abcdefgh")), "abcdefgh");
}

TEST(ScanRange, IsTheWholeFrameWithoutIp) {
  EXPECT_EQ(scanned(packet().eth().ether_type(0x88b5).payload("abc")).size(), 14U + 3);
  EXPECT_EQ(scanned(packet().eth().ether_type(ether_type::kIpv4).payload("E")).size(), 14U + 1);
}

}  // namespace
}  // namespace penstock::nids
