// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/network_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "packet/testing/packet_builder.h"

namespace penstock::port {
namespace {

using ::testing::ElementsAre;
using Frame = penstock::testing::Bytes;
using penstock::testing::packet;

Frame operator+(Frame a, const Frame& b) { return a.insert(a.end(), b.begin(), b.end()), a; }
Frame bytes(std::initializer_list<int> values) { return {values.begin(), values.end()}; }

const Frame kIpv4 = packet().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).bytes();
const Frame kIpv6 = packet().ipv6("fd00::1", "fd00::2").udp(1, 2).bytes();
const Frame kMacs(12);

void expect(LinkType link, const Frame& before, const Frame& ip = kIpv4) {
  const Frame frame = before + ip;
  const Network network = network_of(frame, link);
  EXPECT_EQ(network.version, ip == kIpv4 ? 4 : 6) << static_cast<int>(link);
  EXPECT_EQ(Frame(network.bytes.begin(), network.bytes.end()), ip) << static_cast<int>(link);
}

TEST(NetworkOf, FindsTheIpPacketOfEveryLinkType) {
  expect(LinkType::ethernet, kMacs + bytes({8, 0}));
  expect(LinkType::ethernet, kMacs + bytes({0x86, 0xdd}), kIpv6);
  expect(LinkType::raw_ip, {});
  expect(LinkType::raw_ip, {}, kIpv6);
  expect(LinkType::null_host, bytes({2, 0, 0, 0}));
  expect(LinkType::null_host, bytes({0, 0, 0, 2}));
  expect(LinkType::null_host, bytes({30, 0, 0, 0}), kIpv6);
  expect(LinkType::loop, bytes({0, 0, 0, 2}));
  expect(LinkType::linux_sll, Frame(14) + bytes({8, 0}));
  expect(LinkType::linux_sll2, bytes({8, 0}) + Frame(18));
  expect(LinkType::ppp, bytes({0xff, 3, 0, 0x21}));
  expect(LinkType::ppp, bytes({0x21}));
  expect(LinkType::ppp, bytes({0x57}), kIpv6);
  expect(LinkType::cisco_hdlc, bytes({15, 0, 8, 0}));
}

/*  [MAC addresses][encapsulation][IP]  */
TEST(NetworkOf, SkipsLinkEncapsulations) {
  const auto ethernet = [](const Frame& between, const Frame& ip = kIpv4) {
    expect(LinkType::ethernet, kMacs + between, ip);
  };
  ethernet(bytes({0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0}));                               // 802.1ad
  ethernet(bytes({0x88, 0x64, 0x11, 0, 0, 1, 0, 30, 0, 0x21}));                           // PPPoE
  ethernet(bytes({0x88, 0x64, 0x11, 0, 0, 1, 0, 34, 2, 0x81, 0, 2, 0x51, 64}));           // MPLS in PPPoE
  ethernet(bytes({0x88, 0x47, 0, 1, 0x50, 64, 0, 2, 0x51, 64}));                          // MPLS
  ethernet(bytes({0x88, 0x47, 0, 0, 0x21, 64}), kIpv6);                                   // IPv6 explicit null
  ethernet(bytes({0x88, 0x47, 0, 2, 0x51, 64, 0, 0, 0, 0}) + kMacs + bytes({8, 0}));      // pseudowire
  ethernet(bytes({0x89, 0x4f, 0, 2, 2, 1, 0, 0, 1, 1}));                                  // NSH
  ethernet(bytes({0x89, 0x4f, 0, 2, 2, 3, 0, 0, 1, 1}) + kMacs + bytes({8, 0}));          // Ethernet in NSH
  ethernet(bytes({0x88, 0xe7, 0, 0, 0, 1}) + kMacs + bytes({8, 0}));                      // 802.1ah
  ethernet(bytes({0x89, 0x26, 0, 0, 0, 1, 8, 0}));                                        // VN-Tag
  ethernet(bytes({0x89, 0x3f, 0, 0, 0, 1, 0, 0, 8, 0}));                                  // E-Tag
  ethernet(bytes({0x89, 0x03, 0, 1}) + kMacs + bytes({8, 0}));                            // FabricPath
  ethernet(bytes({0, 38, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0}));                                 // LLC and SNAP
  ethernet(bytes({0x81, 0, 0, 5, 0, 38, 0xaa, 0xaa, 3, 0, 0, 0xf8, 0x86, 0xdd}), kIpv6);  // tagged, 802.1H
}

TEST(NetworkOf, RemembersTheVlansOfUpToEightTags) {
  Frame tags;
  for (int i = 1; i <= 8; ++i) tags = tags + bytes({0x81, 0, 0x20, i});
  const Frame frame = kMacs + tags + bytes({8, 0}) + kIpv4;
  const Network network = network_of(frame, LinkType::ethernet);
  EXPECT_EQ(network.version, 4);
  EXPECT_THAT(network.vlan_ids, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8)) << "without the priority";
  const Frame nine = kMacs + bytes({0x81, 0, 0, 9}) + tags + bytes({8, 0}) + kIpv4;
  EXPECT_EQ(network_of(nine, LinkType::ethernet).version, 0);
}

TEST(NetworkOf, FindsNothingInFramesWithoutIp) {
  const auto none = [](const Frame& frame, LinkType link = LinkType::ethernet) {
    EXPECT_EQ(network_of(frame, link).version, 0);
  };
  none({});
  none(kMacs + bytes({8, 6}) + Frame(28));
  none(kMacs + bytes({0x88, 0xcc}) + Frame(28));
  none(kMacs + bytes({0, 38, 0x42, 0x42, 3}) + Frame(35));
  none(kMacs + bytes({0x88, 0x47, 0, 0, 0x31, 64}) + kIpv4);  // a reserved label
  none(kMacs + bytes({0x88, 0x64, 0x11, 0, 0, 1, 0, 30, 0xc0, 0x21}) + kIpv4);
  none(Frame(20), LinkType::raw_ip);
  none(bytes({9, 0, 0, 0}) + kIpv4, LinkType::null_host);
  none(bytes({0xff}), LinkType::ppp);
}

TEST(NetworkOf, ReadsNothingBeyondTheEndOfTheFrame) {
  const std::vector<Frame> frames = {
      kMacs + bytes({0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0}),
      kMacs + bytes({0x88, 0x64, 0x11, 0, 0, 1, 0, 30, 0, 0x21}),
      kMacs + bytes({0x88, 0x47, 0, 1, 0x50, 64, 0, 2, 0x51, 64, 0, 0, 0, 0}) + kMacs + bytes({8, 0}),
      kMacs + bytes({0x89, 0x4f, 0, 2, 2, 5, 0, 0, 0, 2, 0x51, 64}),
      kMacs + bytes({0, 38, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0}),
      kMacs + bytes({0x88, 0xe7, 0, 0, 0, 1}) + kMacs + bytes({0x89, 0x3f, 0, 0, 0, 1, 0, 0, 0x89, 0x03, 0, 1}) +
          kMacs};
  for (const Frame& frame : frames) {
    for (std::size_t length = 0; length <= frame.size(); ++length) {
      // ASan detects reads beyond its end
      const Frame cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(length));
      for (int link = 0; link < 8; ++link) static_cast<void>(network_of(cut, static_cast<LinkType>(link)));
    }
  }
}

}  // namespace
}  // namespace penstock::port
