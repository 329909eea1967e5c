// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "nf/router/failing_allocation_for_test.h"
#include "nf/router/router_for_test.h"

namespace penstock::router {
namespace {

using penstock::testing::packet;

RouterChange change_of(std::string_view routes) {
  RouterChange change;
  change.routes = config_of(routes).routes;
  return change;
}

std::string way_to(Router& router, std::string_view destination) {
  TestPacket p(packet().eth().ipv4("10.9.9.9", destination).udp(1, 2));
  return send_one(router, p);
}

TEST(RouterUpdate, AddsReplacesAndErasesRoutes) {
  const auto router = build(config_of("10.0.0.0/8 dev lan\n"));
  ASSERT_TRUE(router->update(change_of("10.1.0.0/16 via 10.0.0.1 dev wan\n2001:db8::/32 dev dmz\n")));
  EXPECT_EQ(way_to(*router, "10.1.2.3"), "wan");
  EXPECT_EQ(way_to(*router, "10.2.2.3"), "lan");
  ASSERT_TRUE(router->update(change_of("10.1.0.0/16 via 10.0.0.2 dev dmz\n10.0.0.0/8 via 10.0.0.9 dev wan\n")));
  EXPECT_EQ(way_to(*router, "10.1.2.3"), "dmz");
  EXPECT_EQ(way_to(*router, "10.2.2.3"), "wan");
  RouterChange erase;
  erase.erase4 = {*parse_ipv4_prefix("10.1.0.0/16"), *parse_ipv4_prefix("11.0.0.0/8"),
                  *parse_ipv4_prefix("10.1.0.0/16")};
  erase.erase6 = {*parse_ipv6_prefix("2001:db8::/32")};
  ASSERT_TRUE(router->update(erase));
  EXPECT_EQ(way_to(*router, "10.1.2.3"), "wan");
  TestPacket v6(packet().eth().ipv6("2001:db8:9::9", "2001:db8::1").udp(1, 2));
  EXPECT_EQ(send_one(*router, v6), "no_route");
}

TEST(RouterUpdate, ReachesTheFunctionsThatReadItsRoutes) {
  using Kind = function::FoundRoute::Kind;
  const auto router = build(config_of("10.0.0.0/8 dev lan\nblackhole 10.9.0.0/16\n2001:db8::/32 dev dmz\n"));
  const auto reader = router->read_routes();
  const auto find = [&](std::string_view address) {
    if (const auto ipv6 = parse_ipv6(address)) return reader->find(NetworkLayer::ipv6, *ipv6);
    return reader->find(NetworkLayer::ipv4, {0, parse_ipv4(address)->bits});
  };
  EXPECT_EQ(find("10.1.2.3").kind, Kind::unicast);
  EXPECT_EQ(find("10.1.2.3").ports, 1U << kLan);
  EXPECT_EQ(find("10.9.2.3").kind, Kind::none);
  EXPECT_EQ(find("11.1.2.3").kind, Kind::none);
  EXPECT_EQ(find("2001:db8::1").first, kDmz);
  EXPECT_EQ(find("2001:db9::1").kind, Kind::none);
  // An update waits until all readers have the new routes.
  auto updated = std::async(std::launch::async, [&] {
    return router->update(
        change_of("10.1.0.0/16 nexthop via 10.0.0.1 dev wan weight 1 nexthop via 10.0.0.2 dev dmz weight "
                  "3\n2001:db8::/32 dev lan\n"));
  });
  while (updated.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) reader->refresh();
  ASSERT_TRUE(updated.get());
  EXPECT_EQ(find("10.1.2.3").ports, 1U << kWan | 1U << kDmz);
  EXPECT_EQ(find("10.2.2.3").ports, 1U << kLan);
  EXPECT_EQ(find("2001:db8::1").first, kLan);
}

TEST(RouterUpdate, CountsTheVersionsOfItsRecipe) {
  const auto router = build(config_of("10.0.0.0/8 dev lan\n"));
  const auto version = router->recipe_version();
  ASSERT_TRUE(version);
  ASSERT_TRUE(router->update({}));
  EXPECT_EQ(router->recipe_version(), version) << "nothing has changed for a device";
  ASSERT_TRUE(router->update(change_of("10.1.0.0/16 via 10.0.0.1 dev wan\n")));
  EXPECT_EQ(router->recipe_version(), *version + 1);
  ASSERT_FALSE(router->update([] {
    RouterChange wrong = change_of("11.0.0.0/8 via 10.0.0.1 dev wan\n");
    wrong.routes.v4[0].prefix.address.bits |= 1;  // a host bit
    return wrong;
  }()));
  EXPECT_EQ(router->recipe_version(), *version + 1);
}

TEST(RouterUpdate, AddsARouteThatTheSameChangeErases) {
  const auto router = build(config_of("10.0.0.0/8 dev lan\n"));
  RouterChange change = change_of("10.0.0.0/8 via 10.0.0.1 dev wan\n");
  change.erase4 = {*parse_ipv4_prefix("10.0.0.0/8")};
  ASSERT_TRUE(router->update(change));
  ASSERT_TRUE(router->update({}));
  EXPECT_EQ(way_to(*router, "10.1.2.3"), "wan");
}

TEST(RouterUpdate, VersionsShowWhichTablesChanged) {
  RouterTables tables{*Fib4::build(Fib4Engine::kTrie4, {}), *Fib6::build({}), {}, {}, {}, {}, false, {}, {}};
  const TableVersions before = tables.versions;
  std::vector<std::uint32_t> replaced;
  TableEdit edit;
  ASSERT_TRUE(tables.apply(edit, replaced));
  EXPECT_EQ(tables.versions, before);
  edit.insert6 = {{*parse_ipv6_prefix("2001:db8::/32"), 0}};
  ASSERT_TRUE(tables.apply(edit, replaced));
  EXPECT_EQ(tables.versions, (TableVersions{before.v4, before.v6 + 1, before.hops, before.neighbours}));
  edit = {};
  edit.erase4 = {*parse_ipv4_prefix("10.0.0.0/8")};
  edit.hops = {{0, {}, {}}};
  ASSERT_TRUE(tables.apply(edit, replaced));
  EXPECT_EQ(tables.versions, (TableVersions{before.v4 + 1, before.v6 + 1, before.hops + 1, before.neighbours}));
}

TEST(RouterUpdate, ChangesNothingAfterAnError) {
  const auto router = build(config_of("10.0.0.0/8 dev lan\n"));
  RouterChange change = change_of("10.0.0.0/8 via 10.0.0.1 dev wan\n11.0.0.0/8 via 10.0.0.1 dev wan\n");
  change.routes.v4[1].prefix.address.bits |= 1;  // a host bit
  const std::string before = router->description();
  ASSERT_FALSE(router->update(change));
  EXPECT_EQ(router->description(), before);
  EXPECT_EQ(way_to(*router, "10.1.2.3"), "lan");
  ASSERT_TRUE(router->update(change_of("11.0.0.0/8 dev dmz\n")));
  EXPECT_EQ(way_to(*router, "10.1.2.3"), "lan");
  EXPECT_EQ(way_to(*router, "11.1.2.3"), "dmz");
}

TEST(RouterUpdate, KeepsTheNextHopsOfARouteThatIsErasedAndAddedAgain) {
  const auto router = build(config_of("10.0.0.0/8 via 10.0.0.1 dev lan\n"));
  RouterChange change = change_of("10.0.0.0/8 via 10.0.0.1 dev lan\n");
  change.erase4 = {*parse_ipv4_prefix("10.0.0.0/8")};
  ASSERT_TRUE(router->update(change));
  ASSERT_TRUE(router->update(change_of("11.0.0.0/8 via 10.1.0.1 dev wan\n")));  // does not take a place that is in use
  EXPECT_EQ(way_to(*router, "10.1.2.3"), "lan");
  EXPECT_EQ(way_to(*router, "11.1.2.3"), "wan");
  nlohmann::json report;
  router->report(report);
  EXPECT_EQ(report["next_hops"]["groups"], 2);
  EXPECT_EQ(report["routes_by_kind"]["unicast"], 2);
}

TEST(RouterUpdate, ExplainsWithTheNextHopThatReusedAPlace) {
  // Both gateways look the same to packets; only the explanation differs.
  const auto router = build(config_of("10.0.0.0/8 dev lan\n11.0.0.0/8 via 10.0.0.1 dev wan\n"));
  RouterChange erase;
  erase.erase4 = {*parse_ipv4_prefix("11.0.0.0/8")};
  ASSERT_TRUE(router->update(erase));
  ASSERT_TRUE(router->update(change_of("12.0.0.0/8 via 10.0.0.2 dev wan\n")));
  TestPacket p(packet().eth().ipv4("10.9.9.9", "12.1.1.1").udp(1, 2));
  EXPECT_EQ(explain_one(*router, p), "12.0.0.0/8 via 10.0.0.2 dev wan");
  ASSERT_TRUE(router->update({}));  // the other side of left-right
  EXPECT_EQ(explain_one(*router, p), "12.0.0.0/8 via 10.0.0.2 dev wan");
}

TEST(RouterUpdate, DoesNotBlockReportsAndTracesWhileItWaitsForAWorker) {
  const auto router = build(config_of("10.0.0.0/8 dev lan\n"));
  const auto stage = router->make_cpu_stage();  // a worker in the middle of a batch
  auto update =
      std::async(std::launch::async, [&] { return router->update(change_of("10.0.0.0/8 via 10.1.0.1 dev wan\n")); });
  while (way_to(*router, "10.1.2.3") != "wan") std::this_thread::yield();  // published, and waiting for that worker
  auto reports = std::async(std::launch::async, [&] {
    nlohmann::json report;
    router->report(report);
    TestPacket p(packet().eth().ipv4("10.9.9.9", "10.1.2.3").udp(1, 2));
    return router->description() + "; " + report["ipv4"]["routes"].dump() + "; " + stage->explain(p.view());
  });
  const bool done = reports.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  EXPECT_TRUE(done) << "reports wait for the worker";
  EXPECT_EQ(update.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  TestPacket p(packet().eth().ipv4("10.9.9.9", "10.1.2.3").udp(1, 2));
  EXPECT_EQ(explain_one(*router, p), "10.0.0.0/8 via 10.1.0.1 dev wan");
  stage->begin_batch();
  EXPECT_TRUE(update.get());
  const std::string report_text = reports.get();
  EXPECT_TRUE(report_text.ends_with("; 1; 10.0.0.0/8 dev lan"))
      << "not by the tables of the stage's batch: " << report_text;
  EXPECT_EQ(stage->explain(p.view()), "10.0.0.0/8 via 10.1.0.1 dev wan");
}

/// Everything that a user sees of a router: where packets to many destinations go and why, and what it reports.
std::string sight_of(Router& router) {
  std::string text = router.description();
  nlohmann::json report;
  router.report(report);
  report["next_hops"].erase("bytes");  // includes places that are free again
  text = report.dump();
  for (const char* const destination :
       {"10.1.2.3", "10.2.2.3", "10.1.255.3", "11.1.2.3", "12.1.2.3", "13.1.2.3", "14.1.2.3", "15.1.2.3"}) {
    for (std::uint16_t port = 0; port < 4; ++port) {
      TestPacket p(packet().eth().ipv4("10.9.9.9", destination).udp(port, 2));
      text += "\n";
      text += explain_one(router, p);  // as received
      text += ": ";
      text += send_one(router, p);
      text += " ";
      text += to_string(p.destination_mac());
    }
  }
  return text;
}

RouterConfig many_kinds_of_routes() {
  RouterConfig config = config_of(
      "10.0.0.0/8 via 10.0.0.1 dev lan\n10.1.0.0/16 via 10.0.0.2 dev lan\n11.0.0.0/8 dev lan\n"
      "12.0.0.0/8\n\tnexthop via 10.0.0.1 dev lan weight 1\n\tnexthop via 10.1.0.1 dev wan weight 2\n"
      "2001:db8::/32 dev lan\n");
  config.engine = Fib4Engine::kTrie4;  // quick to build
  config.neighbours = neighbours_of(
      "10.0.0.1 dev lan lladdr 02:00:00:00:00:01 STALE\n10.0.0.2 dev lan lladdr 02:00:00:00:00:02 STALE\n"
      "10.1.0.1 dev wan lladdr 02:00:00:00:01:01 STALE\n");
  return config;
}

/// Replaces, erases, erases and adds again, adds groups of new sizes, and adds so many routes that all tables grow.
RouterChange change_of_all() {
  std::string routes =
      "10.0.0.0/8 via 10.1.0.1 dev wan\n"
      "13.0.0.0/8\n\tnexthop dev lan weight 1\n\tnexthop dev wan weight 1\n\tnexthop dev dmz weight 1\n"
      "12.0.0.0/8\n\tnexthop via 10.0.0.1 dev lan weight 1\n\tnexthop via 10.1.0.1 dev wan weight 2\n"
      "blackhole 14.0.0.0/8\n2001:db8:1::/48 via fe80::1 dev wan\n";
  for (int i = 0; i < 40; ++i) routes += fmt::format("15.{0}.1.{0}/32 via 10.0.1.{0} dev dmz\n", i);
  RouterChange change = change_of(routes);
  change.erase4 = {*parse_ipv4_prefix("10.1.0.0/16"), *parse_ipv4_prefix("12.0.0.0/8")};
  change.erase6 = {*parse_ipv6_prefix("2001:db8::/32")};
  std::string neighbours = "10.0.0.1 dev lan lladdr 02:00:00:00:00:11 STALE\n";
  for (int i = 0; i < 40; ++i) neighbours += fmt::format("10.0.1.{0} dev dmz lladdr 02:00:00:00:02:{0:02x} STALE\n", i);
  change.neighbours = neighbours_of(neighbours);
  change.erase_neighbours = {{mapped(*parse_ipv4("10.0.0.2")), kLan}};
  return change;
}

TEST(RouterUpdate, IsAppliedCompletelyOrNotAtAllIfMemoryRunsOut) {
  const RouterChange change = change_of_all();
  const RouterChange later = change_of("11.0.0.0/8 via 10.1.0.1 dev wan\n15.1.1.1/32 via 10.0.1.1 dev dmz\n");
  const auto never = build(many_kinds_of_routes());
  const std::string before = sight_of(*never);
  ASSERT_TRUE(never->update(change));
  const std::string after = sight_of(*never);
  ASSERT_TRUE(never->update(later));
  const std::string at_last = sight_of(*never);
  ASSERT_NE(before, after);
  const auto other = build(many_kinds_of_routes());
  ASSERT_TRUE(other->update(later));
  const std::string later_alone = sight_of(*other);

  int thrown = 0;
  int without_shadow = 0;
  for (const bool has_shadow : {false, true}) {
    for (int allocation = 0;; ++allocation) {
      SCOPED_TRACE(fmt::format("allocation {}, {} a shadow", allocation, has_shadow ? "with" : "without"));
      const auto router = build(many_kinds_of_routes());
      if (has_shadow) {
        ASSERT_TRUE(router->update({}));
      }
      bool failed = false;
      bool done = false;
      {
        const FailingAllocation fails(allocation);
        try {
          done = router->update(change).has_value();
        } catch (const std::bad_alloc&) {
          failed = true;
        }
        if (!fails.happened()) {
          ASSERT_TRUE(done);
          break;
        }
      }
      ASSERT_NE(failed, done);
      ++(failed ? thrown : without_shadow);
      ASSERT_EQ(sight_of(*router), failed ? before : after);
      if (failed && allocation % 2 == 0) {  // a different change than the one that failed, which must not have left
                                            // anything
        ASSERT_TRUE(router->update(later));
        ASSERT_EQ(sight_of(*router), later_alone);
      }
      if (failed) {
        ASSERT_TRUE(router->update(change));
      }
      if (!failed || allocation % 2 != 0) {
        ASSERT_EQ(sight_of(*router), after);
      }
      ASSERT_TRUE(router->update(later));
      ASSERT_EQ(sight_of(*router), at_last);
      ASSERT_TRUE(router->update({}));  // the other side of left-right
      ASSERT_EQ(sight_of(*router), at_last);
    }
  }
  EXPECT_GT(thrown, 40) << "allocations before the change is certain";
  EXPECT_GT(without_shadow, 5) << "allocations after it";
}

TEST(RouterUpdate, GivesNextHopsTheMacsOfNewNeighbours) {
  RouterConfig config = config_of("10.0.0.0/8 via 10.0.0.1 dev lan\n11.0.0.0/8 dev lan\n");
  config.neighbours.emplace();
  const auto router = build(std::move(config));
  EXPECT_EQ(way_to(*router, "10.1.2.3"), "no_neighbour");
  RouterChange change;
  change.neighbours = neighbours_of(
      "10.0.0.1 dev lan lladdr 02:00:00:00:00:77 STALE\n"
      "11.1.2.3 dev lan lladdr 02:00:00:00:00:78 STALE\n");
  ASSERT_TRUE(router->update(change));
  for (const auto& [destination, last] : {std::pair{"10.1.2.3", 0x77}, std::pair{"11.1.2.3", 0x78}}) {
    TestPacket p(packet().eth().ipv4("10.9.9.9", destination).udp(1, 2));
    EXPECT_EQ(send_one(*router, p), "lan");
    EXPECT_EQ(p.destination_mac().bytes[5], last);
  }
  RouterChange gone;
  gone.erase_neighbours = {{mapped(*parse_ipv4("10.0.0.1")), kLan}};
  ASSERT_TRUE(router->update(gone));
  ASSERT_TRUE(router->update({}));  // the other side of left-right
  EXPECT_EQ(way_to(*router, "10.1.2.3"), "no_neighbour");
  EXPECT_EQ(way_to(*router, "11.1.2.3"), "lan");
}

TEST(RouterUpdate, EqualsANewlyBuiltRouterAfterRandomChanges) {
  std::mt19937 random(11);
  std::map<std::string, std::string> oracle;  // prefix, route
  RouterConfig config = config_of("");
  config.engine = Fib4Engine::kTrie4;  // quick to build
  const auto router = build(std::move(config));
  for (int round = 0; round < 300; ++round) {
    RouterChange change;
    std::string text;
    for (unsigned i = 0; i < random() % 4; ++i) {
      const unsigned length = 4 + static_cast<unsigned>(random() % 8);
      const Ipv4Prefix prefix{{static_cast<std::uint32_t>(random()) & ipv4_mask(length)},
                              static_cast<std::uint8_t>(length)};
      if (random() % 2 == 0) {
        change.erase4.push_back(prefix);
        oracle.erase(to_string(prefix));
      }
    }
    for (unsigned i = 0; i < random() % 6; ++i) {
      const unsigned length = 4 + static_cast<unsigned>(random() % 8);
      const Ipv4Prefix prefix{{static_cast<std::uint32_t>(random()) & ipv4_mask(length)},
                              static_cast<std::uint8_t>(length)};
      std::string route;
      switch (random() % 3) {
        case 0:
          route =
              fmt::format("{} via 10.0.0.{} dev {}\n", to_string(prefix), 1 + random() % 9, kTestPorts[random() % 3]);
          break;
        case 1:
          route = fmt::format("{}\n\tnexthop dev lan weight {}\n\tnexthop via 10.0.0.{} dev dmz weight 2\n",
                              to_string(prefix), 1 + random() % 3, 1 + random() % 3);
          break;
        default: route = "blackhole " + to_string(prefix) + "\n";
      }
      // Of two routes for one prefix, the reader uses the first.
      if (text.find(to_string(prefix) + " ") != std::string::npos ||
          text.find(to_string(prefix) + "\n") != std::string::npos)
        continue;
      text += route;
      oracle[to_string(prefix)] = route;
    }
    change.routes = config_of(text).routes;
    ASSERT_TRUE(router->update(change));
    if (round % 10 != 0) continue;
    std::string all;
    for (const auto& [prefix, route] : oracle) all += route;
    RouterConfig anew = config_of(all);
    anew.engine = Fib4Engine::kTrie4;
    const auto fresh = build(std::move(anew));
    for (int i = 0; i < 500; ++i) {
      TestPacket p(packet().eth().ipv4("10.9.9.9", "1.1.1.1").udp(static_cast<std::uint16_t>(random()), 2));
      p.view().ipv4().destination.set((1 + static_cast<std::uint32_t>(random() % 222)) << 24 | (random() & 0xff'ffff));
      p.view().ipv4().checksum.set(0);
      p.view().ipv4().checksum.set(penstock::testing::slow_checksum(p.bytes, 14, 34));
      p.descriptor.flow_hash = flow_hash(p.view());
      ASSERT_EQ(explain_one(*router, p), explain_one(*fresh, p));
      TestPacket copy = p;
      ASSERT_EQ(send_one(*router, p), send_one(*fresh, copy));
    }
  }
}

TEST(RouterUpdate, NeverShowsAPartialChangeToRunningReaders) {
  // All routes use one output port, and each change moves all of them at once: two packets of one batch must never
  // leave by different ports. Groups of three hops take and free places, so an inconsistent table would also misroute.
  constexpr int kRoutes = 64;
  const auto routes_by = [](int round) {
    const std::string port = kTestPorts[static_cast<std::size_t>(round) % kTestPorts.size()];
    std::string text;
    for (int i = 0; i < kRoutes; ++i) {
      text += fmt::format("{}.0.0.0/8\n", i + 11);
      for (int hop = 0; hop < 1 + (i + round) % 3; ++hop) {
        text += fmt::format("\tnexthop via 10.{}.{}.{} dev {} weight {}\n", i, round % 250, hop + 1, port, hop + 1);
      }
    }
    return text;
  };
  RouterConfig config = config_of(routes_by(0));
  config.engine = Fib4Engine::kTrie4;
  const auto router = build(std::move(config));

  std::atomic<bool> stop{false};
  std::atomic<int> mixed{0};
  std::atomic<int> batches{0};
  const auto work = [&] {
    const auto stage = router->make_cpu_stage();
    std::vector<TestPacket> packets;
    for (int i = 0; i < kRoutes; ++i) {
      packets.emplace_back(
          packet().eth().ipv4("10.9.9.9", fmt::format("{}.1.2.3", i + 11), 255).udp(static_cast<std::uint16_t>(i), 2));
    }
    std::vector<PacketView> views;
    for (TestPacket& p : packets) views.push_back(p.view());
    while (!stop) {
      stage->begin_batch();
      for (int part = 0; part < 4; ++part) {  // all parts of a batch see the same
        stage->process(views);
        const Verdict first = packets[0].descriptor.verdict;
        for (TestPacket& p : packets) {
          if (p.descriptor.verdict != first || first.kind != VerdictKind::forward) ++mixed;
        }
      }
      for (TestPacket& p : packets) {
        Ipv4Header& ip = p.view().ipv4();  // restore it for the next round
        ip.ttl = 255;
        ip.checksum.set(0);
        ip.checksum.set(checksum(p.bytes.data() + 14, 20));
      }
      ++batches;
    }
  };
  std::thread one(work);
  std::thread two(work);
  for (int round = 1; round <= 100; ++round) EXPECT_TRUE(router->update(change_of(routes_by(round))));
  while (batches < 10) std::this_thread::yield();
  stop = true;
  one.join();
  two.join();
  EXPECT_EQ(mixed, 0);
}

TEST(RouterUpdate, ReusesThePlacesOfNextHops) {
  const auto router = build(config_of("10.0.0.0/8 dev lan\n"));
  nlohmann::json first;
  nlohmann::json last;
  for (int i = 0; i < 600; ++i) {
    ASSERT_TRUE(router->update(change_of(fmt::format("11.0.0.0/8 via 10.{}.{}.1 dev wan\n", i / 250, i % 250))));
    if (i == 2) router->report(first);
  }
  router->report(last);
  EXPECT_EQ(first["next_hops"], last["next_hops"]);
}

}  // namespace
}  // namespace penstock::router
