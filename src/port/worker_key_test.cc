// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/worker_key.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "packet/testing/fragments.h"
#include "packet/testing/packet_builder.h"

namespace penstock::port {
namespace {

using Frame = penstock::testing::Bytes;
using penstock::testing::fragments_of;
using penstock::testing::packet;
using penstock::testing::PacketBuilder;

Frame bytes(std::initializer_list<int> values) { return {values.begin(), values.end()}; }

struct Key : WorkerKey {
  Fragment fragment;
};
Key key_of(const Frame& frame, std::uint32_t wire_length = 0) {
  Key key;
  static_cast<WorkerKey&>(key) = worker_key_of(frame, wire_length, LinkType::ethernet, key.fragment);
  return key;
}
std::uint32_t hash_of(const PacketBuilder& builder) { return key_of(builder.bytes()).hash; }

PacketBuilder there() { return packet().eth().ipv4("10.0.0.1", "192.0.2.7"); }
PacketBuilder back() { return packet().eth().ipv4("192.0.2.7", "10.0.0.1"); }
PacketBuilder there6() { return packet().eth().ipv6("fd00::1", "fd00::7"); }

TEST(WorkerKey, IsTheSameInBothDirectionsAndDiffersForOtherPorts) {
  EXPECT_EQ(hash_of(there().tcp(4000, 80)), hash_of(back().tcp(80, 4000)));
  EXPECT_NE(hash_of(there().tcp(4000, 80)), hash_of(there().tcp(4001, 80)));
  EXPECT_NE(hash_of(there().tcp(4000, 80)), hash_of(there().udp(4000, 80)));
  EXPECT_EQ(hash_of(there6().udp(4000, 80)), hash_of(packet().eth().ipv6("fd00::7", "fd00::1").udp(80, 4000)));
  EXPECT_EQ(hash_of(there().sctp(4000, 80)), hash_of(back().sctp(80, 4000)));
  EXPECT_EQ(hash_of(there().icmp(8)), hash_of(back().icmp(0)));
  EXPECT_EQ(key_of(packet().eth().ether_type(0x88cc).bytes()).hash, 0U);
}

TEST(WorkerKey, DoesNotDependOnTheEncapsulation) {
  const std::uint32_t plain = hash_of(there().tcp(4000, 80));
  EXPECT_EQ(hash_of(packet().eth().vlan(5).ipv4("10.0.0.1", "192.0.2.7").tcp(4000, 80)), plain);
  Frame mpls = there().tcp(4000, 80).bytes();
  mpls[12] = 0x88;
  mpls[13] = 0x47;
  const Frame label = bytes({0, 2, 0x51, 64});
  mpls.insert(mpls.begin() + 14, label.begin(), label.end());
  EXPECT_EQ(key_of(mpls).hash, plain);
}

/*  Ethernet │ IPv6 │ destination options × 20 │ TCP  */
TEST(WorkerKey, FindsThePortsAfterAnyNumberOfExtensionHeaders) {
  PacketBuilder many = there6();
  for (int i = 0; i < 20; ++i) many.extension(ip_protocol::kDestinationOptions, 1 + i % 3);
  many.extension(ip_protocol::kMobility).extension(ip_protocol::kRouting).fragment6(0);
  EXPECT_EQ(hash_of(many.tcp(4000, 80)), hash_of(there6().tcp(4000, 80)));
}

/*  there: 10.0.0.1 → 192.0.2.7 │ UDP 50000 → 4789 │ VXLAN │ a flow's packet
    back:  192.0.2.7 → 10.0.0.1 │ UDP 61000 → 4789 │ VXLAN │ the answer       */
TEST(WorkerKey, DependsOnlyOnAddressesForTunnels) {
  const std::uint32_t tunnel = hash_of(there().udp(50000, 4789));
  for (const std::uint16_t port : std::initializer_list<std::uint16_t>{3544, 4789, 4790, 6081, 8472}) {
    EXPECT_EQ(hash_of(back().udp(61000, port)), tunnel) << port;
    EXPECT_EQ(hash_of(back().udp(port, 61000)), tunnel) << port;
  }
  for (const std::uint8_t protocol : {ip_protocol::kIpv4, ip_protocol::kIpv6, ip_protocol::kGre}) {
    EXPECT_EQ(hash_of(back().protocol(protocol)), tunnel);
  }
  EXPECT_NE(hash_of(there().tcp(50000, 4789)), tunnel);
  EXPECT_NE(hash_of(there().udp(50000, 4788)), tunnel);
  EXPECT_EQ(hash_of(there6().extension(ip_protocol::kDestinationOptions).protocol(41)),
            hash_of(there6().udp(50000, 6081)));
}

/*  router 198.51.100.1 → 10.0.0.1 │ ICMP 3 │ the IP header and ports of a packet from 10.0.0.1  */
TEST(WorkerKey, OfAnIcmpErrorIsThatOfTheQuotedFlow) {
  const auto error = [](const Frame& quoted, std::uint8_t type = 3) {
    return hash_of(packet().eth().ipv4("198.51.100.1", "10.0.0.1").icmp(type, 1).raw(quoted));
  };
  const auto quoted = packet().ipv4("10.0.0.1", "192.0.2.7").tcp(4000, 80).bytes();
  EXPECT_EQ(error(quoted), hash_of(there().tcp(4000, 80)));
  EXPECT_EQ(error(packet().ipv4("10.0.0.1", "192.0.2.7").udp(4000, 53).bytes()), hash_of(there().udp(4000, 53)));
  EXPECT_EQ(error(packet().ipv4("10.0.0.1", "192.0.2.7").udp(50000, 4789).bytes()), hash_of(there().udp(1, 4789)));
  const std::uint32_t own = hash_of(packet().eth().ipv4("198.51.100.1", "10.0.0.1").icmp(8));
  EXPECT_EQ(error(quoted, 11), error(quoted));
  EXPECT_EQ(error(quoted, 13), own) << "no error";
  EXPECT_EQ(error(packet().ipv4("10.0.0.1", "192.0.2.7").icmp(8).bytes()), hash_of(there().icmp(8)));
  EXPECT_EQ(error(Frame(quoted.begin(), quoted.begin() + 23)), own) << "the ports are not there";
  EXPECT_EQ(error(packet().ipv4("10.0.0.1", "192.0.2.7", 64, {}, 5).tcp(4000, 80).bytes()), own) << "a later fragment";
}

TEST(WorkerKey, OfAnIcmpv6ErrorIsThatOfTheQuotedFlow) {
  const auto error = [](const Frame& quoted, std::uint8_t type) {
    return hash_of(packet().eth().ipv6("2001:db8:ffff::1", "fd00::1").icmp(type).raw(quoted));
  };
  const auto flow = [] { return packet().ipv6("fd00::1", "2001:db8::7"); };
  const std::uint32_t of_flow = hash_of(packet().eth().ipv6("fd00::1", "2001:db8::7").udp(4000, 53));
  for (std::uint8_t type = 1; type <= 4; ++type) {
    EXPECT_EQ(error(flow().udp(4000, 53).bytes(), type), of_flow);
    EXPECT_EQ(error(flow().extension(ip_protocol::kDestinationOptions).udp(4000, 53).bytes(), type), of_flow);
  }
  const std::uint32_t own = hash_of(packet().eth().ipv6("2001:db8:ffff::1", "fd00::1").icmp(128));
  EXPECT_EQ(error(flow().udp(4000, 53).bytes(), 128), own) << "no error";
  EXPECT_EQ(error(flow().fragment6(64).udp(4000, 53).bytes(), 2), own) << "a later fragment";
  EXPECT_EQ(error(flow().fragment6(1).udp(4000, 53).bytes(), 2), of_flow) << "a first fragment";
  const Frame quoted = flow().udp(4000, 53).bytes();
  EXPECT_EQ(error(Frame(quoted.begin(), quoted.begin() + 43), 2), own) << "the ports are not there";
}

TEST(WorkerKey, IdentifiesTheDatagramOfAFragment) {
  const auto parts = fragments_of(there().udp(4000, 53).payload("sixteen bytes ...").bytes(), {8, 16}, 0x4321);
  const Key first = key_of(parts[0]), second = key_of(parts[1]), last = key_of(parts[2]);
  EXPECT_TRUE(first.is_fragment && first.tells_flow);
  EXPECT_EQ(first.hash, hash_of(there().udp(4000, 53)));
  EXPECT_TRUE(second.is_fragment && !second.tells_flow);
  EXPECT_EQ(second.fragment.key, first.fragment.key);
  EXPECT_EQ(second.fragment.key.id, 0x4321U);
  EXPECT_EQ(second.fragment.offset, 8U);
  EXPECT_TRUE(second.fragment.more);
  EXPECT_FALSE(last.fragment.more);
  EXPECT_EQ(last.hash, address_hash_of(last.fragment.key));
  EXPECT_FALSE(key_of(there().udp(4000, 53).bytes()).is_fragment);
}

TEST(WorkerKey, ReadsIpv6FragmentsAfterExtensionHeaders) {
  const Frame whole =
      there6().extension(ip_protocol::kHopByHop).extension(ip_protocol::kDestinationOptions).udp(4000, 53).bytes();
  const auto parts = fragments_of(whole, {8}, 0x12345678, 14, 8);
  const Key first = key_of(parts[0]), last = key_of(parts[1]);
  EXPECT_TRUE(first.is_fragment);
  EXPECT_FALSE(first.tells_flow) << "only the options are in it";
  EXPECT_EQ(first.fragment.key.id, 0x12345678U);
  EXPECT_EQ(last.fragment.key, first.fragment.key);
  EXPECT_EQ(flow_hash_of(first.fragment, Frame(whole.begin() + 14 + 48, whole.end())), hash_of(there6().udp(4000, 53)));
}

TEST(WorkerKey, DistinguishesDatagramsOfDifferentVlans) {
  const auto fragment = [](std::uint16_t vlan) {
    const Frame whole = packet().eth().vlan(vlan).ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).payload("12345678").bytes();
    return key_of(fragments_of(whole, {8}, 7, 18)[1]).fragment.key;
  };
  EXPECT_EQ(fragment(5), fragment(0x2005)) << "the priority is no part of it";
  EXPECT_NE(fragment(5), fragment(6));
}

TEST(WorkerKey, IsTheSameForAFrameTruncatedAfterThePorts) {
  for (const PacketBuilder& builder : {there().tcp(4000, 80), there6().extension(60).udp(4000, 53)}) {
    const Frame frame = builder.bytes();
    const std::size_t ports_end = frame.size() - (frame[14] >> 4 == 4 ? 16 : 4);
    for (std::size_t n = ports_end; n < frame.size(); ++n) {
      const Frame cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(n));
      EXPECT_EQ(key_of(cut, static_cast<std::uint32_t>(frame.size())).hash, hash_of(builder)) << n;
    }
  }
}

TEST(WorkerKey, SpreadsFlowsOverWorkers) {
  std::vector<int> load(8);
  for (std::uint16_t port = 1024; port < 1024 + 8000; ++port) {
    ++load[worker_of_hash(hash_of(there().tcp(port, 443)), 8)];
  }
  const auto [least, most] = std::ranges::minmax_element(load);
  EXPECT_GT(*least, 850);
  EXPECT_LT(*most, 1150);
}

}  // namespace
}  // namespace penstock::port
