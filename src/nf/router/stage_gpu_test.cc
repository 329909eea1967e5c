// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the GPU stage on a lane with the CPU twin: verdicts and frames, also while the tables change.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gpu/cuda_error.h"
#include "gpu/memory.h"
#include "nf/router/recipe.h"
#include "nf/router/router_for_test.h"
#include "nf/stage_twins_for_test.h"

namespace penstock::router {
namespace {

using testing::Bytes;
using testing::Frame;
using testing::OwnLane;
using testing::packet;
using testing::RandomFrames;
using testing::StageTwins;
using testing::Way;
using testing::whole_frame;

/// Routes of every kind, to the destinations of RandomFrames (192.0.2.0/24, fe80::/10) and of `routed_frame`.
constexpr std::string_view kRoutes =
    "default via 10.1.0.2 dev wan\n"
    "10.0.0.0/24 dev lan scope link\n"
    "192.0.2.0/25 via 10.0.0.9 dev lan\n"
    "192.0.2.128/26\n\tnexthop via 10.1.0.2 dev wan weight 1\n\tnexthop dev dmz weight 3\n"
    "192.0.2.192/28 via 10.0.0.77 dev lan\n"  // not a neighbour
    "blackhole 192.0.2.208/28\nprohibit 192.0.2.209/32\n"
    "172.16.0.0/12\n\tnexthop via 10.1.0.2 dev wan weight 1\n\tnexthop via 10.0.0.9 dev lan weight 2\n"
    "\tnexthop via 10.2.0.1 dev dmz weight 5\n"
    "blackhole 198.18.0.0/24\nunreachable 198.18.1.0/24\nprohibit 198.18.2.0/24\nthrow 198.18.3.0/24\n"
    "local 198.18.4.1 dev lan table local\nbroadcast 198.18.4.255 dev lan table local\n"
    "198.18.5.0/24 via 10.1.0.2 dev wan\n198.18.5.128/25 via 10.0.0.9 dev lan\n198.18.5.129/32 dev dmz\n"
    "2001:db8::/32 via fe80::1 dev wan\n2001:db8:1::/48 dev lan\n2001:db8:1:0:8000::/66 via fe80::2 dev dmz\n"
    "fe80::/121 via fe80::1 dev wan\nblackhole fe80::80/123\n"
    "2001:db8:2::/48\n\tnexthop via fe80::1 dev wan weight 1\n\tnexthop via fe80::2 dev dmz weight 1\n";
constexpr std::string_view kNeighbours =
    "10.1.0.2 dev wan lladdr 02:00:00:00:01:02 REACHABLE\n"
    "10.0.0.9 dev lan lladdr 02:00:00:00:00:09 STALE\n"
    "10.2.0.1 dev dmz lladdr 02:00:00:00:02:01 STALE\n"
    "10.0.0.7 dev lan lladdr 02:00:00:00:00:07 STALE\n"
    "192.0.2.130 dev dmz lladdr 02:00:00:00:02:82 STALE\n"
    "198.18.5.129 dev dmz lladdr 02:00:00:00:02:81 STALE\n"
    "fe80::1 dev wan lladdr 02:00:00:00:03:01 STALE\n"
    "fe80::2 dev dmz lladdr 02:00:00:00:03:02 STALE\n"
    "2001:db8:1::5 dev lan lladdr 02:00:00:00:00:05 STALE\n";

RouterConfig config_with(Fib4Engine engine, bool rewrites_and_checks) {
  RouterConfig config = config_of(kRoutes);
  config.engine = engine;
  config.rules = {.verify_checksum = rewrites_and_checks, .drop_martians = rewrites_and_checks};
  if (rewrites_and_checks) {
    config.neighbours = neighbours_of(kNeighbours);
    config.ports[kWan] = {{{2, 0, 0, 0, 0xaa, 1}}, true};
    config.ports[kDmz] = {{{2, 0, 0, 0, 0xaa, 2}}, true};
    config.rules.host = kDmz;
  }
  return config;
}

/// A frame to one of the routes, or just beside it; whole, fragmented or truncated; with the hop limits and addresses
/// that matter.
Frame routed_frame(RandomFrames& draw) {
  constexpr std::array kSources = {"10.9.9.9", "10.9.9.9", "10.9.9.9", "127.0.0.1", "0.0.0.0", "224.0.0.1"};
  constexpr std::array kSources6 = {"2001:db8:9::9", "2001:db8:9::9", "fe80::9", "::1", "ff02::1"};
  constexpr std::array kTo6 = {"2001:db8::1",   "2001:db8:1::5", "2001:db8:1::6", "2001:db8:1:0:8000::1",
                               "2001:db8:2::1", "2002::1",       "ff02::fb",      "fe80::81"};
  constexpr std::array<std::uint8_t, 6> kHops = {0, 1, 2, 64, 64, 255};
  const std::uint8_t hops = kHops[draw.below(kHops.size())];
  const auto port = static_cast<std::uint16_t>(draw.below(65536));
  auto builder = packet();
  const bool raw = draw.below(10) == 0;
  if (!raw) {
    builder.eth(draw.below(16) == 0 ? MacAddress{{1, 0, 0x5e, 0, 0, 1}} : MacAddress{{2, 0, 0, 0, 0, 2}});
    if (draw.below(4) == 0) builder.vlan(7);
  }
  if (draw.below(3) == 0) {
    builder.ipv6(kSources6[draw.below(kSources6.size())], kTo6[draw.below(kTo6.size())], hops);
    if (draw.below(8) == 0) builder.fragment6(static_cast<std::uint16_t>(8 * draw.below(100) + 1));
  } else {
    std::string to;
    switch (draw.below(5)) {
      case 0: to = fmt::format("172.{}.1.{}", 15 + draw.below(18), draw.below(256)); break;
      case 1: to = fmt::format("198.18.{}.{}", draw.below(7), draw.below(2) == 0 ? 1 : 126 + draw.below(4)); break;
      case 2: to = fmt::format("10.0.0.{}", 6 + draw.below(4)); break;
      case 3: to = fmt::format("192.0.2.{}", draw.below(256)); break;
      default: to = draw.below(4) == 0 ? "255.255.255.255" : "8.8.8.8"; break;
    }
    const auto fragment = static_cast<std::uint16_t>(draw.below(8) == 0 ? 0x2000 + draw.below(100) : 0);
    builder.ipv4(kSources[draw.below(kSources.size())], to, hops, Bytes(draw.below(8) == 0 ? 8 : 0, 1), fragment);
  }
  Frame frame = whole_frame(builder.udp(port, 53).payload(std::string(draw.below(200), 'x')),
                            raw ? LinkType::raw_ip : LinkType::ethernet);
  if (draw.below(16) == 0) frame.bytes[draw.below(std::min<std::size_t>(34, frame.bytes.size()))] ^= 4;
  if (draw.below(16) == 0) frame.bytes.resize(draw.below(std::min<std::size_t>(60, frame.bytes.size())));
  return frame;
}

class RouterOnDevice : public ::testing::TestWithParam<Way> {};

INSTANTIATE_TEST_SUITE_P(Ways, RouterOnDevice, ::testing::ValuesIn(testing::kWays),
                         [](const auto& way) { return way.param.name; });

TEST_P(RouterOnDevice, ForwardsAsItsTwinDoes) {
  for (const Fib4Engine engine : {Fib4Engine::kDir24, Fib4Engine::kTrie1, Fib4Engine::kTrie4}) {
    for (const bool rewrites_and_checks : {true, false}) {
      SCOPED_TRACE(fmt::format("{}, {} MACs and checks", to_string(engine), rewrites_and_checks ? "with" : "without"));
      const auto on_device = build(config_with(engine, rewrites_and_checks));
      const auto on_host = build(config_with(engine, rewrites_and_checks));
      StageTwins twins(*on_device, *on_host, GetParam());
      RandomFrames draw(1);
      const auto next = [&] { return draw.below(2) == 0 ? draw.frame() : routed_frame(draw); };
      for (const std::size_t size : {0U, 1U, 31U, 32U, 33U, 255U, 256U, 257U, 1000U}) {
        while (twins.lane().batch().size() < size) ASSERT_TRUE(twins.lane().append(next()));
        ASSERT_NO_FATAL_FAILURE(twins.run()) << size << " packets";
      }
      for (int round = 0; round < 20; ++round) {
        for (std::uint32_t n = draw.below(4000); n > 0 && twins.lane().append(next()); --n) continue;
        ASSERT_NO_FATAL_FAILURE(twins.run()) << "round " << round;
      }
      EXPECT_GT(twins.forwarded(), twins.packets() / 10);
      EXPECT_LT(twins.forwarded(), twins.packets());
      EXPECT_LT(twins.punted(), twins.packets() / 4);
    }
  }
}

TEST_P(RouterOnDevice, ForwardsAsItsTwinDoesByItsRecipe) {
  for (const Fib4Engine engine : {Fib4Engine::kDir24, Fib4Engine::kTrie1, Fib4Engine::kTrie4}) {
    SCOPED_TRACE(to_string(engine));
    const auto router = build(config_with(engine, true));
    const auto on_host = build(config_with(engine, true));
    testing::FromRecipe on_device(*router, remote_kernel());
    StageTwins twins(on_device, *on_host, GetParam());
    RandomFrames draw(3);
    for (int round = 0; round < 5; ++round) {
      for (int n = 0; n < 2000 && twins.lane().append(draw.below(2) == 0 ? draw.frame() : routed_frame(draw)); ++n) {
        continue;
      }
      ASSERT_NO_FATAL_FAILURE(twins.run()) << "round " << round;
    }
    EXPECT_GT(twins.forwarded(), twins.packets() / 10);
  }
}

RouterChange change_of(std::string_view routes) {
  RouterChange change;
  change.routes = config_of(routes).routes;
  return change;
}

/// `by_recipe`: as another process does that has the tables from recipes.
void expect_every_kind_of_change(bool by_recipe, const Way& way) {
  const auto on_device = build(config_with(Fib4Engine::kTrie4, true));
  const auto on_host = build(config_with(Fib4Engine::kTrie4, true));
  testing::FromRecipe elsewhere(*on_device, remote_kernel());
  StageTwins twins(by_recipe ? static_cast<function::NetworkFunction&>(elsewhere) : *on_device, *on_host, way);
  RandomFrames draw(2);
  std::vector<Frame> frames;
  for (int i = 0; i < 2000; ++i) frames.push_back(routed_frame(draw));
  const auto expect_twins = [&] {
    for (const Frame& frame : frames) ASSERT_TRUE(twins.lane().append(frame));
    ASSERT_NO_FATAL_FAILURE(twins.run());
  };
  RouterChange only_v6;
  only_v6.erase6 = {*parse_ipv6_prefix("2001:db8::/32")};
  RouterChange only_neighbours;
  only_neighbours.neighbours = neighbours_of("10.0.0.77 dev lan lladdr 02:00:00:00:00:4d STALE\n");
  only_neighbours.erase_neighbours = {{mapped(*parse_ipv4("10.1.0.2")), kWan}};
  std::string many = "198.18.5.0/24 via 10.2.0.1 dev dmz\n";
  std::string many_neighbours;
  for (int i = 0; i < 300; ++i) {  // so that all tables grow
    many += fmt::format("198.18.6.{}/32 via 10.2.{}.{} dev dmz\n", i % 256, 1 + i / 250, i % 250);
    many += fmt::format("2001:db8:5:{:x}::/64 via fe80::{:x} dev lan\n", i, i + 16);
    many_neighbours += fmt::format("10.2.{}.{} dev dmz lladdr 02:00:00:01:{:02x}:{:02x} STALE\n", 1 + i / 250, i % 250,
                                   i / 256, i % 256);
  }
  RouterChange all = change_of(many);
  all.neighbours = neighbours_of(many_neighbours);
  all.erase4 = {*parse_ipv4_prefix("172.16.0.0/12")};
  ASSERT_NO_FATAL_FAILURE(expect_twins());
  for (const RouterChange& change : {only_v6, only_neighbours, all, RouterChange{}, change_of(kRoutes)}) {
    for (Router* const router : {on_device.get(), on_host.get()}) {
      std::atomic<bool> done{false};
      std::thread update([&] {
        EXPECT_TRUE(router->update(change));
        done = true;
      });
      while (!done) twins.at_boundary();
      update.join();
    }
    if (by_recipe) elsewhere.replace_tables([&] { twins.at_boundary(); });
    ASSERT_NO_FATAL_FAILURE(expect_twins());
  }
}

TEST_P(RouterOnDevice, FollowsEveryKindOfChange) { expect_every_kind_of_change(false, GetParam()); }

TEST_P(RouterOnDevice, FollowsEveryKindOfChangeByItsRecipe) { expect_every_kind_of_change(true, GetParam()); }

/// All routes use one output port, a different one each round, with groups of one to three hops.
std::string routes_by(int round, int routes) {
  const std::string port = kTestPorts[static_cast<std::size_t>(round) % kTestPorts.size()];
  std::string text;
  for (int i = 0; i < routes; ++i) {
    text += fmt::format("{}.0.0.0/8\n", i + 11);
    for (int hop = 0; hop < 1 + (i + round) % 3; ++hop) {
      text += fmt::format("\tnexthop via 10.{}.{}.{} dev {} weight {}\n", i, round % 250, hop + 1, port, hop + 1);
    }
  }
  return text;
}

void expect_no_half_of_a_change(Fib4Engine engine, int rounds, const Way& way) {
  constexpr int kRoutesChanged = 64;
  constexpr std::size_t kLanes = 8;
  RouterConfig config = config_of(routes_by(0, kRoutesChanged));
  config.engine = engine;
  const auto router = build(std::move(config));
  std::vector<std::unique_ptr<OwnLane>> lanes;
  for (std::size_t i = 0; i < kLanes; ++i) lanes.push_back(std::make_unique<OwnLane>(*router, way));
  for (const auto& lane : lanes) {
    for (int i = 0; i < 4 * kRoutesChanged; ++i) {
      const auto to = fmt::format("{}.1.2.3", i % kRoutesChanged + 11);
      ASSERT_TRUE(lane->append(
          whole_frame(packet().eth().ipv4("10.9.9.9", to).udp(static_cast<std::uint16_t>(i), 2).payload("x"))));
    }
  }

  std::vector<RouterChange> changes;
  for (int round = 0; round <= rounds; ++round) changes.push_back(change_of(routes_by(round, kRoutesChanged)));
  std::atomic<int> begun{0};
  std::atomic<int> done{0};
  std::thread updates([&] {
    for (int round = 1; round <= rounds; ++round) {
      begun = round;
      EXPECT_TRUE(router->update(changes[static_cast<std::size_t>(round)]));
      done = round;
    }
  });
  std::vector<int> done_before(kLanes);
  int batches = 0;
  const auto start = [&](std::size_t i) {
    done_before[i] = done;
    ASSERT_TRUE(lanes[i]->start());
  };
  const auto settle = [&](std::size_t i) {
    ASSERT_EQ(lanes[i]->wait(), gpu::Progress::kDone);
    const int begun_behind = begun;
    const auto verdicts = lanes[i]->lane().results().verdicts;
    const Verdict first = verdicts[0];
    ASSERT_TRUE(first.alive());
    for (const Verdict verdict : verdicts) ASSERT_EQ(verdict, first) << "by another port than the batch's first packet";
    bool possible = false;
    for (int round = done_before[i]; round <= begun_behind; ++round) {
      possible |= first.value == round % static_cast<int>(kTestPorts.size());
    }
    ASSERT_TRUE(possible) << "port " << first.value << ", rounds " << done_before[i] << " to " << begun_behind;
    ++batches;
  };
  // Lanes start one after the other, so that updates meet batches in flight, and lanes between two batches.
  [&] {
    for (std::size_t i = 0; i < kLanes; ++i) ASSERT_NO_FATAL_FAILURE(start(i));
    while (done < rounds || batches < 3000) {
      for (std::size_t i = 0; i < kLanes; ++i) {
        ASSERT_NO_FATAL_FAILURE(settle(i));
        ASSERT_NO_FATAL_FAILURE(start(i));
      }
    }
    for (std::size_t i = 0; i < kLanes; ++i) ASSERT_NO_FATAL_FAILURE(settle(i));
    for (std::size_t i = 0; i < kLanes; ++i) {  // and finally with the last tables
      ASSERT_NO_FATAL_FAILURE(start(i));
      ASSERT_NO_FATAL_FAILURE(settle(i));
    }
  }();
  lanes.clear();  // after a failure: lets an update that waits for a lane end
  updates.join();
}

TEST_P(RouterOnDevice, ShowsNoHalfOfAChangeToBatchesInFlight) {
  ASSERT_NO_FATAL_FAILURE(expect_no_half_of_a_change(Fib4Engine::kTrie4, 200, GetParam()));
}

TEST(RouterOnDeviceAlone, ShowsNoHalfOfAChangeOfALargeTable) {
  ASSERT_NO_FATAL_FAILURE(expect_no_half_of_a_change(Fib4Engine::kDir24, 30, testing::kWays[0]));
}

/// Allocates all free device memory; the result frees it.
std::vector<gpu::DeviceBuffer<std::byte>> all_device_memory() {
  std::vector<gpu::DeviceBuffer<std::byte>> taken;
  for (std::size_t bytes = std::size_t{16} << 30; bytes >= std::size_t{1} << 20;) {
    try {
      taken.emplace_back(bytes);
    } catch (const gpu::CudaError&) {
      bytes /= 2;
    }
  }
  return taken;
}

TEST(RouterOnDeviceAlone, RefusesBatchesWhereItsTablesCannotFollowAndTakesThemAgainOnceTheyCan) {
  if (std::getenv("COMPUTE_SANITIZER") != nullptr) GTEST_SKIP() << "it needs device memory of its own";
  const auto router = build(config_of("11.0.0.0/8 dev lan\n"));
  OwnLane lane(*router, testing::kWays[0]);
  ASSERT_TRUE(lane.append(whole_frame(packet().eth().ipv4("10.9.9.9", "11.1.2.3").udp(1, 2))));
  const auto port_on_device = [&]() -> std::string {
    if (!lane.start()) {
      lane.lane().abandon();
      return "refused";
    }
    EXPECT_EQ(lane.wait(), gpu::Progress::kDone);
    return name_of(lane.lane().results().verdicts[0]);
  };
  const auto update = [&](const RouterChange& change) {
    std::atomic<bool> done{false};
    std::thread thread([&] {
      EXPECT_TRUE(router->update(change));
      done = true;
    });
    while (!done) lane.lane().begin_batch();
    thread.join();
  };
  EXPECT_EQ(port_on_device(), "lan");
  {
    const auto taken = all_device_memory();
    update(change_of("11.0.0.0/8 dev wan\n"));  // the first update, which makes the second copy of the tables
  }
  EXPECT_EQ(port_on_device(), "refused");
  TestPacket on_host(packet().eth().ipv4("10.9.9.9", "11.1.2.3").udp(1, 2));
  EXPECT_EQ(send_one(*router, on_host), "wan");
  update(change_of("12.0.0.0/8 dev dmz\n"));
  EXPECT_EQ(port_on_device(), "wan");
}

}  // namespace
}  // namespace penstock::router
