// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/router.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "nf/router/router_for_test.h"

namespace penstock::router {
namespace {

using penstock::testing::Bytes;
using penstock::testing::packet;
using ::testing::HasSubstr;

constexpr std::string_view kRoutes =
    "default via 10.1.0.2 dev wan\n"
    "10.0.0.0/24 dev lan scope link\n"
    "192.0.2.0/24 via 10.0.0.9 dev lan\n"
    "blackhole 198.18.0.0/24\nunreachable 198.18.1.0/24\nprohibit 198.18.2.0/24\nthrow 198.18.3.0/24\n"
    "local 198.18.4.1 dev lan table local\nbroadcast 198.18.4.255 dev lan table local\n"
    "2001:db8::/32 via fe80::1 dev wan\n2001:db8:1::/48 dev lan\n";

std::string send_ipv4(std::string_view destination, std::string_view source = "10.9.9.9") {
  const auto router = build(config_of(kRoutes));
  TestPacket p(packet().eth().ipv4(source, destination).udp(1, 2).payload("x"));
  return send_one(*router, p);
}
std::string send_ipv6(std::string_view destination, std::string_view source = "2001:db8:9::9") {
  const auto router = build(config_of(kRoutes));
  TestPacket p(packet().eth().ipv6(source, destination).udp(1, 2).payload("x"));
  return send_one(*router, p);
}

TEST(Router, ForwardsByTheLongestPrefix) {
  EXPECT_EQ(send_ipv4("8.8.8.8"), "wan");
  EXPECT_EQ(send_ipv4("10.0.0.7"), "lan");
  EXPECT_EQ(send_ipv4("192.0.2.7"), "lan");
  EXPECT_EQ(send_ipv6("2001:db8:2::1"), "wan");
  EXPECT_EQ(send_ipv6("2001:db8:1::1"), "lan");
}

TEST(Router, ForwardsTheSameWithEveryEngine) {
  for (const Fib4Engine engine : {Fib4Engine::kDir24, Fib4Engine::kTrie1, Fib4Engine::kTrie4}) {
    RouterConfig config = config_of(kRoutes);
    config.engine = engine;
    const auto router = build(std::move(config));
    TestPacket p(packet().eth().ipv4("10.9.9.9", "192.0.2.7").udp(1, 2));
    EXPECT_EQ(send_one(*router, p), "lan") << to_string(engine);
    EXPECT_THAT(router->description(), HasSubstr(std::string(to_string(engine))));
  }
}

TEST(Router, DropsPacketWithoutARoute) { EXPECT_EQ(send_ipv6("2002::1"), "no_route"); }

TEST(Router, DropsByTheTypeOfTheRoute) {
  EXPECT_EQ(send_ipv4("198.18.0.1"), "blackhole");
  EXPECT_EQ(send_ipv4("198.18.1.1"), "unreachable");
  EXPECT_EQ(send_ipv4("198.18.2.1"), "prohibit");
  EXPECT_EQ(send_ipv4("198.18.3.1"), "no_route");
  EXPECT_EQ(send_ipv4("198.18.4.1"), "local");
  EXPECT_EQ(send_ipv4("198.18.4.255"), "multicast");
}

/// With the host at the other end of port dmz, whose end has this MAC.
constexpr MacAddress kHostMac{{2, 0, 0, 0, 0xbb, 1}};
RouterConfig config_with_host() {
  RouterConfig config = config_of(std::string(kRoutes) + "local 2001:db8:1::1 dev lan table local\n");
  config.rules.host = kDmz;
  config.ports[kDmz] = {kHostMac, true};
  return config;
}

TEST(Router, SendsPacketsForTheHostByItsPortAndKeepsTheirHopLimit) {
  const auto router = build(config_with_host());
  TestPacket v4(packet().eth().ipv4("10.9.9.9", "198.18.4.1", 1).udp(1, 2).payload("x"));
  TestPacket v6(packet().eth().ipv6("2001:db8:9::9", "2001:db8:1::1", 1).udp(1, 2).payload("x"));
  for (TestPacket* const p : {&v4, &v6}) {
    Bytes want = p->bytes;
    std::ranges::copy(kHostMac.bytes, want.begin());
    EXPECT_EQ(send_one(*router, *p), "dmz");
    EXPECT_EQ(p->bytes, want) << "only the destination MAC changes";
  }
  RouterConfig without_mac = config_with_host();
  without_mac.ports[kDmz].mac = {};
  TestPacket early(packet().eth().ipv4("10.9.9.9", "198.18.4.1").udp(1, 2));
  EXPECT_EQ(send_one(*build(std::move(without_mac)), early), "no_neighbour");
  TestPacket forwarded(packet().eth().ipv4("10.9.9.9", "8.8.8.8", 1).udp(1, 2));
  EXPECT_EQ(send_one(*router, forwarded), "ttl_exceeded");
}

TEST(Router, RoutesWhatTheHostSendsAndKeepsItsHopLimit) {
  const auto router = build(config_with_host());
  const auto from_host = [&](const testing::PacketBuilder& builder) {
    TestPacket p(builder);
    p.descriptor.in_port = kDmz;
    const Bytes before = p.bytes;
    const std::string where = send_one(*router, p);
    EXPECT_EQ(p.bytes, before);
    return where;
  };
  EXPECT_EQ(from_host(packet().eth().ipv4("198.18.4.1", "8.8.8.8", 1).udp(1, 2)), "wan");
  EXPECT_EQ(from_host(packet().eth().ipv6("2001:db8:1::1", "2001:db8:1::7", 1).udp(1, 2)), "lan");
  EXPECT_EQ(from_host(packet().eth().ipv4("198.18.4.1", "198.18.4.1").udp(1, 2)), "local") << "it would come back";
  EXPECT_EQ(from_host(packet().eth().ipv4("127.0.0.1", "8.8.8.8").udp(1, 2)), "martian");
}

TEST(Router, ReadsThePortWherePacketsCameOnlyIfTheHostHasOne) {
  EXPECT_FALSE(build(config_of(kRoutes))->traits().cpu.reads.has(Field::in_port));
  const auto router = build(config_with_host());
  EXPECT_TRUE(router->traits().cpu.reads.has(Field::in_port));
  EXPECT_TRUE(router->traits().cpu.writes.has(Field::eth_dst));
  EXPECT_EQ(router->traits().access_on(function::Processor::gpu)->reads, router->traits().cpu.reads);
}

TEST(Router, DropsMartians) {
  EXPECT_EQ(send_ipv4("8.8.8.8", "127.0.0.1"), "martian");
  EXPECT_EQ(send_ipv4("8.8.8.8", "0.0.0.0"), "martian");
  EXPECT_EQ(send_ipv4("8.8.8.8", "224.0.0.1"), "martian");
  EXPECT_EQ(send_ipv4("8.8.8.8", "255.255.255.255"), "martian");
  EXPECT_EQ(send_ipv4("127.0.0.1"), "martian");
  EXPECT_EQ(send_ipv4("0.1.2.3"), "martian");
  EXPECT_EQ(send_ipv4("8.8.8.8", "240.0.0.1"), "wan");
  EXPECT_EQ(send_ipv6("2001:db8::1", "::1"), "martian");
  EXPECT_EQ(send_ipv6("2001:db8::1", "::"), "martian");
  EXPECT_EQ(send_ipv6("2001:db8::1", "fe80::1"), "martian");
  EXPECT_EQ(send_ipv6("2001:db8::1", "ff02::1"), "martian");
  EXPECT_EQ(send_ipv6("fe80::1"), "martian");
  EXPECT_EQ(send_ipv6("::1"), "martian");
  EXPECT_EQ(send_ipv6("2001:db8::1", "::ffff:192.0.2.1"), "martian");
  EXPECT_EQ(send_ipv6("2001:db8::1", "::fffe:192.0.2.1"), "wan");
  EXPECT_EQ(send_ipv6("::2"), "no_route");
}

TEST(Router, ForwardsMartiansOnRequest) {
  RouterConfig config = config_of(kRoutes);
  config.rules.drop_martians = false;
  const auto router = build(std::move(config));
  TestPacket p(packet().eth().ipv4("127.0.0.1", "127.0.0.1").udp(1, 2));
  EXPECT_EQ(send_one(*router, p), "wan");
}

TEST(Router, DropsIpAndLinkMulticasts) {
  EXPECT_EQ(send_ipv4("224.0.0.251"), "multicast");
  EXPECT_EQ(send_ipv4("255.255.255.255"), "multicast");
  EXPECT_EQ(send_ipv6("ff02::fb"), "multicast");
  const auto router = build(config_of(kRoutes));
  const MacAddress broadcast{{255, 255, 255, 255, 255, 255}};
  TestPacket p(packet().eth(broadcast).ipv4("10.9.9.9", "8.8.8.8").udp(1, 2));
  EXPECT_EQ(send_one(*router, p), "multicast");
}

TEST(Router, DropsBroadcastsAndMulticastsByTheCookedHeader) {
  const auto router = build(config_of(kRoutes));
  const Bytes ip = packet().ipv4("10.9.9.9", "8.8.8.8").udp(1, 2).bytes();
  const struct {
    LinkType link;
    std::size_t header, type_at, packet_type_at;
  } cooked[] = {{LinkType::linux_sll, sizeof(LinuxSllHeader), 14, 1},
                {LinkType::linux_sll2, sizeof(LinuxSll2Header), 0, 10}};
  for (const auto& [link, header, type_at, packet_type_at] : cooked) {
    // <linux/if_packet.h>: to this host, broadcast, multicast, to another host, from this host.
    for (const auto& [packet_type, fate] : {std::pair(0, "wan"), std::pair(1, "multicast"), std::pair(2, "multicast"),
                                            std::pair(3, "wan"), std::pair(4, "wan")}) {
      Bytes frame(header);
      frame[type_at] = 0x08;
      frame[packet_type_at] = static_cast<std::uint8_t>(packet_type);
      frame.insert(frame.end(), ip.begin(), ip.end());
      TestPacket p(frame, link);
      EXPECT_EQ(send_one(*router, p), fate) << packet_type << " by link type " << static_cast<int>(link);
    }
  }
}

TEST(Router, DropsPacketsOtherThanIp) {
  const auto router = build(config_of(kRoutes));
  TestPacket arp(packet().eth().ether_type(ether_type::kArp).raw(Bytes(28)));
  EXPECT_EQ(send_one(*router, arp), "not_ip");
  TestPacket runt(Bytes{1, 2, 3});
  EXPECT_EQ(send_one(*router, runt), "not_ip");
}

TEST(Router, DistinguishesATruncatedHeaderFromAMalformedOne) {
  const auto router = build(config_of(kRoutes));
  const Bytes frame = packet().eth().ipv4("10.9.9.9", "8.8.8.8").udp(1, 2).payload("data").bytes();
  TestPacket cut(frame, LinkType::ethernet, 14 + 19);
  EXPECT_EQ(send_one(*router, cut), "truncated");
  TestPacket cut_behind_the_header(frame, LinkType::ethernet, 14 + 20);
  EXPECT_EQ(send_one(*router, cut_behind_the_header), "wan");
  TestPacket short_on_the_wire(Bytes(frame.begin(), frame.begin() + 14 + 19));
  EXPECT_EQ(send_one(*router, short_on_the_wire), "malformed");
  TestPacket longer_than_the_wire(Bytes(frame.begin(), frame.end() - 1));
  EXPECT_EQ(send_one(*router, longer_than_the_wire), "malformed");
  for (const std::uint8_t version_ihl : Bytes{0x44, 0x55, 0x00}) {
    Bytes bad = frame;
    bad[14] = version_ihl;
    TestPacket p(bad);
    EXPECT_EQ(send_one(*router, p), "malformed") << int{version_ihl};
  }
}

TEST(Router, DropsAWrongHeaderChecksumUnlessConfiguredNotToVerify) {
  Bytes frame = packet().eth().ipv4("10.9.9.9", "8.8.8.8").udp(1, 2).bytes();
  frame[14 + 1] ^= 4;  // the TOS byte
  TestPacket p(frame);
  EXPECT_EQ(send_one(*build(config_of(kRoutes)), p), "bad_checksum");
  EXPECT_EQ(p.bytes, frame);
  RouterConfig config = config_of(kRoutes);
  config.rules.verify_checksum = false;
  EXPECT_EQ(send_one(*build(std::move(config)), p), "wan");
}

TEST(Router, DropsAtHopLimitOneWithoutChangingThePacket) {
  const auto router = build(config_of(kRoutes));
  for (const std::uint8_t hops : Bytes{0, 1}) {
    TestPacket v4(packet().eth().ipv4("10.9.9.9", "8.8.8.8", hops).udp(1, 2));
    const Bytes before = v4.bytes;
    EXPECT_EQ(send_one(*router, v4), "ttl_exceeded");
    EXPECT_EQ(v4.bytes, before);
    TestPacket v6(packet().eth().ipv6("2001:db8:9::9", "2001:db8::1", hops).udp(1, 2));
    EXPECT_EQ(send_one(*router, v6), "ttl_exceeded");
  }
}

TEST(Router, ChangesTheHopLimitAndTheChecksumAndNothingElse) {
  const auto router = build(config_of(kRoutes));
  TestPacket v4(packet().eth().vlan(7).ipv4("10.9.9.9", "8.8.8.8", 2, {7, 4, 4, 0}).udp(1, 2).payload("data"));
  EXPECT_EQ(send_one(*router, v4), "wan");
  EXPECT_EQ(v4.bytes,
            packet().eth().vlan(7).ipv4("10.9.9.9", "8.8.8.8", 1, {7, 4, 4, 0}).udp(1, 2).payload("data").bytes());
  TestPacket v6(packet().eth().ipv6("2001:db8:9::9", "2001:db8::1", 2).tcp(1, 2));
  EXPECT_EQ(send_one(*router, v6), "wan");
  EXPECT_EQ(v6.bytes, packet().eth().ipv6("2001:db8:9::9", "2001:db8::1", 1).tcp(1, 2).bytes());
}

TEST(Router, RewritesMacsByTheNeighbours) {
  RouterConfig config = config_of(kRoutes);
  config.neighbours = neighbours_of(
      "10.1.0.2 dev wan lladdr 02:00:00:00:01:02 REACHABLE\n"
      "10.0.0.7 dev lan lladdr 02:00:00:00:00:07 STALE\n"
      "10.0.0.9 dev wan lladdr 02:00:00:00:00:09 STALE\n"  // on another port
      "2001:db8:1::5 dev lan lladdr 02:00:00:00:00:05 STALE\n");
  const MacAddress wan_mac{{2, 0, 0, 0, 0xaa, 1}};
  config.ports[kWan] = {wan_mac, true};
  const auto router = build(std::move(config));
  const MacAddress own_source{{2, 0, 0, 0, 0, 1}};

  TestPacket by_gateway(packet().eth().ipv4("10.9.9.9", "8.8.8.8").udp(1, 2));
  EXPECT_EQ(send_one(*router, by_gateway), "wan");
  EXPECT_EQ(by_gateway.destination_mac(), (MacAddress{{2, 0, 0, 0, 1, 2}}));
  EXPECT_EQ(by_gateway.source_mac(), wan_mac);

  TestPacket on_the_link(packet().eth().ipv4("10.9.9.9", "10.0.0.7").udp(1, 2));
  EXPECT_EQ(send_one(*router, on_the_link), "lan");
  EXPECT_EQ(on_the_link.destination_mac(), (MacAddress{{2, 0, 0, 0, 0, 7}}));
  EXPECT_EQ(on_the_link.source_mac(), own_source);

  TestPacket on_the_link6(packet().eth().ipv6("2001:db8:9::9", "2001:db8:1::5").udp(1, 2));
  EXPECT_EQ(send_one(*router, on_the_link6), "lan");
  EXPECT_EQ(on_the_link6.destination_mac(), (MacAddress{{2, 0, 0, 0, 0, 5}}));

  TestPacket silent_gateway(packet().eth().ipv4("10.9.9.9", "192.0.2.1").udp(1, 2));
  EXPECT_EQ(send_one(*router, silent_gateway), "no_neighbour");
  EXPECT_EQ(silent_gateway.bytes, packet().eth().ipv4("10.9.9.9", "192.0.2.1").udp(1, 2).bytes());
  TestPacket silent_host(packet().eth().ipv4("10.9.9.9", "10.0.0.8").udp(1, 2));
  EXPECT_EQ(send_one(*router, silent_host), "no_neighbour");
}

TEST(Router, DistinguishesAnIpv4NeighbourFromTheIpv6OneWithTheMappedAddress) {
  const auto mac_of = [](std::string_view neighbours, TestPacket p) -> std::string {
    RouterConfig config = config_of("10.0.0.0/24 dev lan\n::ffff:0:0/96 dev lan\n");
    config.neighbours = neighbours_of(neighbours);
    const std::string sent = send_one(*build(std::move(config)), p);
    return sent == "lan" ? to_string(p.destination_mac()) : sent;
  };
  const TestPacket v4(packet().eth().ipv4("10.9.9.9", "10.0.0.7").udp(1, 2));
  const TestPacket v6(packet().eth().ipv6("2001:db8:9::9", "::ffff:10.0.0.7").udp(1, 2));
  const std::string neighbour4 = "10.0.0.7 dev lan lladdr 02:00:00:00:00:04 STALE\n";
  const std::string neighbour6 = "::ffff:10.0.0.7 dev lan lladdr 02:00:00:00:00:06 STALE\n";
  EXPECT_EQ(mac_of(neighbour4, v4), "02:00:00:00:00:04");
  EXPECT_EQ(mac_of(neighbour4, v6), "no_neighbour");
  EXPECT_EQ(mac_of(neighbour6, v4), "no_neighbour");
  EXPECT_EQ(mac_of(neighbour4 + neighbour6, v4), "02:00:00:00:00:04");
  EXPECT_EQ(mac_of(neighbour4 + neighbour6, v6), "02:00:00:00:00:06");
}

TEST(Router, NeedsNoNeighbourOnLinksWithoutMacs) {
  RouterConfig config = config_of(kRoutes);
  config.neighbours.emplace();
  const auto router = build(std::move(config));
  const Bytes frame = packet().eth().ipv4("10.9.9.9", "8.8.8.8").udp(1, 2).bytes();
  TestPacket raw(Bytes(frame.begin() + 14, frame.end()), LinkType::raw_ip);
  EXPECT_EQ(send_one(*router, raw), "wan");
}

TEST(Router, KeepsMacsWithoutANeighbourFile) {
  const auto router = build(config_of(kRoutes));
  TestPacket p(packet().eth().ipv4("10.9.9.9", "8.8.8.8").udp(1, 2));
  const Bytes before = p.bytes;
  EXPECT_EQ(send_one(*router, p), "wan");
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 14, p.bytes.begin()));
}

TEST(Router, ProcessesManyPacketsLikeTheCoreProcessesOne) {
  const auto config = config_of(kRoutes);
  const auto v4 = Fib4::build(Fib4Engine::kTrie4, config.routes.v4);
  const auto v6 = Fib6::build(config.routes.v6);
  std::vector<Hop> hops(config.routes.next_hops.places());
  const NeighbourTable neighbours;
  for (std::uint32_t i = 0; i < hops.size(); ++i) {
    make_hops(config.routes.next_hops.kind(i), config.routes.next_hops.hops(i), neighbours, false,
              std::span(hops).subspan(i));
  }
  const ForwardCore<Trie4View, Fib6View> core{
      std::get<Trie4View>(v4->view()), v6->view(), {hops.data(), config.ports.data(), neighbours.view()}, {}};
  const auto router = build(config_of(kRoutes));
  const auto stage = router->make_cpu_stage();
  for (const std::size_t count : {1U, 31U, 32U, 33U, 127U, 128U, 129U, 1000U}) {
    std::vector<TestPacket> packets;
    std::vector<Verdict> want;
    for (std::size_t i = 0; i < count; ++i) {
      const auto hop_limit = static_cast<std::uint8_t>(i % 5);
      if (i % 3 == 0) {
        packets.emplace_back(packet()
                                 .eth()
                                 .ipv6("2001:db8:9::9", fmt::format("200{}:db8:{}::1", 1 + i % 2, i % 4), hop_limit)
                                 .udp(1, 2));
      } else {
        packets.emplace_back(packet().eth().ipv4("10.9.9.9", fmt::format("198.18.{}.1", i % 7), hop_limit).udp(1, 2));
      }
      TestPacket copy = packets.back();
      want.push_back(core(copy.view()));
    }
    std::vector<PacketView> views;
    for (TestPacket& p : packets) views.push_back(p.view());
    stage->process(views);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(packets[i].descriptor.verdict, want[i]) << i << " of " << count;
  }
}

TEST(Router, ExplainsWhichRouteItTakes) {
  const auto router = build(config_of(
      std::string(kRoutes) + "172.16.0.0/12\n\tnexthop via 10.1.0.2 dev wan weight 1\n\tnexthop dev lan weight 1\n"));
  TestPacket by_gateway(packet().eth().ipv4("10.9.9.9", "192.0.2.1").udp(1, 2));
  EXPECT_EQ(explain_one(*router, by_gateway), "192.0.2.0/24 via 10.0.0.9 dev lan");
  TestPacket nowhere(packet().eth().ipv6("2001:db8:9::9", "2002::1").udp(1, 2));
  EXPECT_EQ(explain_one(*router, nowhere), "no route to 2002::1");
  TestPacket martian(packet().eth().ipv4("127.0.0.1", "192.0.2.1").udp(1, 2));
  EXPECT_EQ(explain_one(*router, martian), "martian");
  TestPacket shared(packet().eth().ipv4("10.9.9.9", "172.16.1.1").udp(1, 2));
  const std::string text = explain_one(*router, shared);
  EXPECT_EQ(text, send_one(*router, shared) == "wan" ? "172.16.0.0/12 via 10.1.0.2 dev wan (1 of 2 next hops)"
                                                     : "172.16.0.0/12 dev lan (2 of 2 next hops)");
}

TEST(Router, DeclaresNoMoreThanItsParametersNeed) {
  const auto plain = build(config_of(kRoutes));
  EXPECT_FALSE(plain->traits().cpu.writes.has(Field::eth_dst));
  EXPECT_FALSE(plain->traits().cpu.writes.has(Field::eth_src));
  EXPECT_TRUE(plain->traits().cpu.reads.has(Field::ipv4_tos));
  RouterConfig config = config_of(kRoutes);
  config.rules = {.verify_checksum = false, .drop_martians = false};
  config.neighbours.emplace();
  const auto other = build(std::move(config));
  EXPECT_TRUE(other->traits().cpu.writes.has(Field::eth_dst));
  EXPECT_FALSE(other->traits().cpu.reads.has(Field::ipv4_tos));
  EXPECT_FALSE(other->traits().cpu.reads.has(Field::ipv4_src));
}

TEST(Router, ReportsWhatIsLoaded) {
  const auto router = build(config_of(kRoutes));
  nlohmann::json json;
  router->report(json);
  EXPECT_EQ(json["ipv4"]["routes"], 9);
  EXPECT_EQ(json["ipv6"]["routes"], 2);
  EXPECT_EQ(json["routes_by_kind"]["unicast"], 5);
  EXPECT_EQ(json["routes_by_kind"]["blackhole"], 1);
  EXPECT_FALSE(json.contains("neighbours"));
}

// --- from parameters ---------------------------------------------------------------------------------------------

class RouterParameters : public ::testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view text) {
    const std::string path = fmt::format("{}/router_test_{}_{}", ::testing::TempDir(), ::getpid(), name);
    std::ofstream(path) << text;
    files_.push_back(path);
    return path;
  }
  void TearDown() override {
    for (const std::string& path : files_) std::remove(path.c_str());
  }
  Result<std::unique_ptr<function::NetworkFunction>> make(std::vector<RawParameter> given) {
    auto parameters = Parameters::read(router_kind().parameters, std::move(given), {"chain.yaml", 3, 5});
    if (!parameters) return failure(std::move(parameters).error());
    return router_kind().make(*parameters, context_);
  }
  static RawParameter given(std::string name, std::vector<std::string> items,
                            RawParameter::Shape shape = RawParameter::Shape::scalar) {
    return {std::move(name), {"chain.yaml", 4, 7}, {"chain.yaml", 4, 15}, std::move(items), shape, ""};
  }
  static constexpr auto kMapping = RawParameter::Shape::mapping;

  std::vector<std::string> files_;
  function::NfContext context_{.ports = kTestPorts, .out_port_known = false, .unsupported = {}};
};

TEST_F(RouterParameters, MakeARouterFromFiles) {
  const auto router = make(
      {given("routes", {write("routes", "8.0.0.0/8 via 10.1.0.2 dev eth0\n"), write("more", "9.0.0.0/8 dev lan\n")},
             RawParameter::Shape::list),
       given("neighbours", {write("neigh", "10.1.0.2 dev eth0 lladdr 02:00:00:00:00:02 STALE\n")}),
       given("interfaces", {"eth0=wan"}, kMapping), given("macs", {"eth0=02:00:00:00:00:aa"}, kMapping),
       given("ipv4", {"trie4"})});
  ASSERT_TRUE(router) << to_string(router.error());
  EXPECT_THAT((*router)->description(), HasSubstr("2 IPv4 routes in a trie4 table"));
  TestPacket p(packet().eth().ipv4("10.9.9.9", "8.8.8.8").udp(1, 2));
  EXPECT_EQ(send_one(static_cast<Router&>(**router), p), "wan");
  EXPECT_EQ(p.destination_mac(), (MacAddress{{2, 0, 0, 0, 0, 2}}));
  EXPECT_EQ(p.source_mac(), (MacAddress{{2, 0, 0, 0, 0, 0xaa}}));
}

TEST_F(RouterParameters, ReportAllErrorsInAllFilesAtOnce) {
  const std::string routes = write("routes", "8.0.0.0/8 via 10.1.0.2 dev eth0\n10.0.0.0/8\n");
  const std::string neighbours = write("neigh", "10.1.0.2 dev wan lladdr 02 STALE\n");
  const auto router = make({given("routes", {routes}), given("neighbours", {neighbours}),
                            given("interfaces", {"eth1=dmz", "eth2=nowhere"}, kMapping),
                            given("macs", {"wan=01:00:00:00:00:01", "eth7=02:00:00:00:00:01"}, kMapping)});
  ASSERT_FALSE(router);
  EXPECT_EQ(
      to_string(router.error()),
      "chain.yaml:4:15: interface 'eth2' is mapped to an unknown port: found 'nowhere', expected lan, wan, dmz, none\n"
      "chain.yaml:4:15: wrong MAC address of port wan: found '01:00:00:00:00:01', expected a unicast address such as "
      "02:00:00:00:00:01\n"
      "chain.yaml:4:15: MAC address for an unknown port: found 'eth7', expected lan, wan, dmz\n" +
          routes +
          ":1:28: unknown device: found 'eth0', expected lan, wan, dmz, or an entry in `interfaces` "
          "(a port or none)\n" +
          routes + ":2: route without a next hop: expected via, dev, or nexthop lines\n" + neighbours +
          ":1:25: not a MAC address: found '02', expected six bytes such as 02:00:00:00:00:01");
}

TEST_F(RouterParameters, AreRefusedWithoutARouteInAnyFile) {
  const std::string none = write("none", "\n");
  const std::string six = write("six", "");
  const auto router = make({given("routes", {none, six}, RawParameter::Shape::list)});
  ASSERT_FALSE(router);
  EXPECT_EQ(to_string(router.error()), "chain.yaml:4:15: no routes in " + none + ", " + six +
                                           ": expected output of `ip route` or `ip -6 route`, with at least one route");
  EXPECT_TRUE(make({given("routes", {none, write("one", "::/0 dev wan\n")}, RawParameter::Shape::list)}));
}

TEST_F(RouterParameters, ReportUnsupportedRoutesAsWarningsUnlessStrict) {
  const std::string routes = write("routes", "8.0.0.0/8 dev lan\n9.0.0.0/8 dev lan tos 0x10\n");
  EXPECT_TRUE(make({given("routes", {routes})}));
  ASSERT_EQ(context_.unsupported.size(), 1U);
  EXPECT_EQ(context_.unsupported[0].place.line, 2U);
  EXPECT_FALSE(make({given("routes", {routes}), given("strict", {"true"})}));
}

}  // namespace
}  // namespace penstock::router
