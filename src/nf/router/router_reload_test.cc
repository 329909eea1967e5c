// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that a router describes how it differs from the running one, and takes its place.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>

#include "nf/router/router_for_test.h"

namespace penstock::router {
namespace {

using penstock::testing::packet;

constexpr std::string_view kRoutes =
    "default via 10.1.0.2 dev wan\n"
    "10.0.0.0/24 dev lan scope link\n"
    "blackhole 198.18.0.0/24\n"
    "203.0.113.0/24 nexthop via 10.1.0.2 dev wan weight 1 nexthop via 10.2.0.2 dev dmz weight 3\n"
    "2001:db8::/32 via fe80::1 dev wan\n";

std::string changes(Router& running, const Router& next) {
  const auto changes = next.changes_from(running);
  EXPECT_TRUE(changes) << to_string(changes.error());
  return changes.value_or("");
}
std::string changes(std::string_view before, std::string_view now) {
  return changes(*build(config_of(before)), *build(config_of(now)));
}
/// kRoutes with a part replaced.
std::string with(std::string_view part, std::string_view instead) {
  std::string routes(kRoutes);
  EXPECT_NE(routes.find(part), std::string::npos) << part;
  return routes.replace(routes.find(part), part.size(), instead);
}

std::string way_to(Router& router, std::string_view destination) {
  TestPacket p(packet().eth().ipv4("10.9.9.9", destination).udp(1, 2));
  return send_one(router, p);
}

TEST(RouterReload, FindsNoChangeInTheSameRoutes) {
  EXPECT_EQ(changes(kRoutes, kRoutes), "");
  EXPECT_EQ(changes("10.0.0.0/8 dev lan\n11.0.0.0/8 via 1.1.1.1 dev wan\n",
                    "11.0.0.0/8 via 1.1.1.1 dev wan\n10.0.0.0/8 dev lan\n"),
            "")
      << "the order of routes has no meaning, although next hops get other numbers";
}

TEST(RouterReload, CountsRoutesThatCameWentOrChanged) {
  EXPECT_EQ(changes(kRoutes, with("10.0.0.0/24", "10.0.0.0/25")), "1 IPv4 route added, 1 removed");
  EXPECT_EQ(changes(kRoutes, with("default via 10.1.0.2", "default via 10.1.0.3")), "1 IPv4 route changed");
  EXPECT_EQ(changes(kRoutes, with("blackhole", "prohibit")), "1 IPv4 route changed") << "its type";
  EXPECT_EQ(changes(kRoutes, with("10.0.0.0/24 dev lan", "10.0.0.0/24 dev dmz")), "1 IPv4 route changed") << "its port";
  EXPECT_EQ(changes(kRoutes, with("weight 3", "weight 4")), "1 IPv4 route changed");
  EXPECT_EQ(changes(kRoutes, with("2001:db8::/32 via fe80::1 dev wan\n", "2001:db8::/48 dev lan\n::/0 dev lan\n")),
            "2 IPv6 routes added, 1 removed");
  EXPECT_EQ(changes(kRoutes, "10.0.0.0/24 dev lan\n"), "3 IPv4 routes removed, 1 IPv6 route removed");
}

TEST(RouterReload, ComparesTablesOfDifferentEngines) {
  RouterConfig config = config_of(with("default via 10.1.0.2", "default via 10.1.0.3"));
  config.engine = Fib4Engine::kTrie4;
  EXPECT_EQ(changes(*build(config_of(kRoutes)), *build(std::move(config))), "1 IPv4 route changed, ipv4 dir24 → trie4");
}

TEST(RouterReload, DescribesNeighboursMacsAndChecks) {
  const auto router = [](std::string_view neighbours, const char* mac, CheckRules rules = {}) {
    RouterConfig config = config_of(kRoutes);
    config.neighbours = neighbours_of(neighbours);
    config.rules = rules;
    if (mac != nullptr) config.ports[kWan] = {*parse_mac(mac), true};
    return build(std::move(config));
  };
  const auto running =
      router("10.1.0.2 dev wan lladdr 02:00:00:00:00:02 REACHABLE\n10.1.0.3 dev wan lladdr 02:00:00:00:00:03 STALE\n",
             "02:00:00:00:00:01");
  EXPECT_EQ(changes(*running, *router("10.1.0.2 dev wan lladdr 02:00:00:00:00:02 REACHABLE\n"
                                      "10.1.0.3 dev wan lladdr 02:00:00:00:00:03 REACHABLE\n",
                                      "02:00:00:00:00:01")),
            "");
  EXPECT_EQ(changes(*running, *router("10.1.0.2 dev wan lladdr 02:00:00:00:00:99 REACHABLE\n"
                                      "10.1.0.2 dev dmz lladdr 02:00:00:00:00:03 REACHABLE\n",
                                      "02:00:00:00:00:77")),
            "1 neighbour added, 1 removed, 1 changed, 1 source MAC changed");
  EXPECT_EQ(changes(*running, *router("10.1.0.2 dev wan lladdr 02:00:00:00:00:02 REACHABLE\n"
                                      "10.1.0.3 dev wan lladdr 02:00:00:00:00:03 REACHABLE\n",
                                      nullptr, {false, false})),
            "1 source MAC removed, verify_checksum true → false, drop_martians true → false");
  EXPECT_EQ(changes(*running, *build(config_of(kRoutes))),
            "2 neighbours removed, 1 source MAC removed, destination MACs are kept");
}

TEST(RouterReload, ComparesWithTheRoutesAsUpdatedSinceTheStart) {
  const auto running = build(config_of(kRoutes));
  RouterChange change;
  change.routes = config_of("192.0.2.0/24 dev dmz\ndefault via 10.1.0.3 dev wan\n").routes;
  ASSERT_TRUE(running->update(change));
  EXPECT_EQ(changes(*running, *build(config_of(kRoutes))), "1 IPv4 route removed, 1 changed");
}

TEST(RouterReload, StagesOfBothForwardByTheirOwnTables) {
  const auto running = build(config_of(kRoutes));
  const auto next = build(config_of(with("default via 10.1.0.2 dev wan", "default via 10.2.0.2 dev dmz")));
  const auto send = [](function::CpuStage& stage) {
    TestPacket p(packet().eth().ipv4("10.9.9.9", "8.8.8.8").udp(1, 2));
    std::vector<PacketView> views{p.view()};
    stage.begin_batch();
    stage.process(views);
    return name_of(p.descriptor.verdict);
  };
  auto old_stage = running->make_cpu_stage();
  ASSERT_TRUE(next->take_over(*running));
  const auto new_stage = next->make_cpu_stage();
  EXPECT_EQ(send(*old_stage), "wan");
  EXPECT_EQ(send(*new_stage), "dmz");
  EXPECT_EQ(send(*old_stage), "wan") << "a batch that began earlier";
  old_stage.reset();
  next->predecessor_ended();
  EXPECT_EQ(send(*new_stage), "dmz");
}

TEST(RouterReload, TakesItsPlaceBackWithTheRoutesThatItHad) {
  const auto first = build(config_of(kRoutes));
  RouterChange change;
  change.routes = config_of("192.0.2.0/24 dev dmz\n").routes;
  ASSERT_TRUE(first->update(change));
  const auto second = build(config_of(kRoutes));
  ASSERT_TRUE(second->take_over(*first));
  second->predecessor_ended();
  EXPECT_EQ(way_to(*second, "192.0.2.1"), "wan");
  ASSERT_TRUE(first->take_over(*second));
  first->predecessor_ended();
  EXPECT_EQ(way_to(*first, "192.0.2.1"), "dmz");
  ASSERT_TRUE(first->update(change)) << "updates go on";
  first->predecessor_ended();  // nothing to do twice
  EXPECT_EQ(way_to(*first, "192.0.2.1"), "dmz");
}

TEST(RouterReload, ComparesLargeTablesQuickly) {
  const auto router = [](std::uint32_t first) {
    RouterConfig config = config_of("");
    std::vector<std::uint32_t> groups;
    for (std::uint32_t i = 0; i < 1000; ++i) {
      const NextHop hop{mapped(Ipv4Address{0x0a000000 + i}), static_cast<PortIndex>(i % 3), 1};
      groups.push_back(config.routes.next_hops.intern(RouteKind::unicast, {&hop, 1}));
    }
    for (std::uint32_t i = first; i < first + 200'000; ++i) {
      config.routes.v4.push_back({{Ipv4Address{i << 8}, 24}, groups[i % groups.size()]});
      config.routes.next_hops.add_route(groups[i % groups.size()]);
    }
    return build(std::move(config));
  };
  const auto running = router(70'000);
  const auto next = router(70'010);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(changes(*running, *next), "10 IPv4 routes added, 10 removed");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds{1}) << "some 3 ms without instrumentation";
}

}  // namespace
}  // namespace penstock::router
