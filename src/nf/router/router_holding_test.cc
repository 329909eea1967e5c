// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the router's stage lacks for packets to missing neighbours, and what it learns.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "function/holding_stage.h"
#include "nf/router/missing_neighbours.h"
#include "nf/router/router_for_test.h"

namespace penstock::router {
namespace {

using penstock::testing::packet;
using ::testing::UnorderedElementsAre;

class FakeSource final : public TableSource {
 public:
  Result<void> join(Router&) override { return {}; }
  void leave(Router&) noexcept override {}
  MissingNeighbours& missing() noexcept override { return missing_; }
  void report(nlohmann::json&) const override {}

  /// "10.0.0.1 dev 1"
  std::vector<std::string> asked() {
    std::vector<std::string> all;
    missing_.take([&](const Ipv6Address& address, PortIndex device) {
      all.push_back((is_mapped(address) ? to_string(unmapped(address)) : to_string(address)) + " dev " +
                    std::to_string(device));
    });
    return all;
  }

 private:
  MissingNeighbours missing_;
};

/// A router with the kernel's neighbours, and a worker's stage.
struct Bed {
  explicit Bed(std::string_view routes) {
    RouterConfig config = config_of(routes);
    config.neighbours.emplace();
    config.from_kernel.neighbours = true;
    router = build(std::move(config));
    router->set_source(&source);
    stage = router->make_cpu_stage();
    holding = dynamic_cast<function::HoldingStage*>(stage.get());
    EXPECT_NE(holding, nullptr);
  }
  /// The worker passes a batch boundary meanwhile, as it would.
  void update(const RouterChange& change) {
    auto done = std::async(std::launch::async, [&] { return router->update(change); });
    while (done.wait_for(std::chrono::milliseconds(0)) != std::future_status::ready) stage->begin_batch();
    ASSERT_TRUE(done.get());
  }
  std::string process(TestPacket& p) {
    PacketView view = p.view();
    p.descriptor.verdict = Verdict::forward();
    stage->process({&view, 1});
    return name_of(p.descriptor.verdict);
  }
  std::string process_again(TestPacket& p, bool news) {
    PacketView view = p.view();
    p.descriptor.verdict = Verdict::forward();
    holding->process_again({&view, 1}, news);
    return name_of(p.descriptor.verdict);
  }

  FakeSource source;
  std::unique_ptr<Router> router;
  std::unique_ptr<function::CpuStage> stage;
  function::HoldingStage* holding = nullptr;
};

TestPacket to4(std::string_view destination) {
  return TestPacket(packet().eth().ipv4("10.9.9.9", destination).udp(1, 2));
}
TestPacket to6(std::string_view destination) {
  return TestPacket(packet().eth().ipv6("2001:db8:9::9", destination).udp(1, 2));
}

constexpr std::string_view kRoutes =
    "10.1.0.0/16 dev wan\n10.2.0.0/16 via 10.1.0.9 dev wan\n10.3.0.0/16 via 10.1.0.9 dev wan\n"
    "2001:db8:1::/64 dev wan\n2001:db8:2::/64 via 2001:db8:1::9 dev wan\n";

TEST(RouterHolding, AsksForTheGatewayOrForTheDestination) {
  Bed bed(kRoutes);
  const auto lacks = [&](TestPacket p) {
    EXPECT_EQ(bed.process(p), "no_neighbour");
    return bed.holding->lacks(p.view());
  };
  const auto gateway = lacks(to4("10.2.0.1"));
  EXPECT_TRUE(gateway);
  EXPECT_EQ(gateway, lacks(to4("10.3.7.7"))) << "the same gateway";
  EXPECT_NE(gateway, lacks(to4("10.1.0.1")));
  EXPECT_NE(lacks(to4("10.1.0.2")), lacks(to4("10.1.0.1")));
  EXPECT_TRUE(lacks(to6("2001:db8:1::1")));
  EXPECT_TRUE(lacks(to6("2001:db8:2::1")));
  EXPECT_THAT(bed.source.asked(), UnorderedElementsAre("10.1.0.9 dev 1", "10.1.0.1 dev 1", "10.1.0.2 dev 1",
                                                       "2001:db8:1::1 dev 1", "2001:db8:1::9 dev 1"));
}

TEST(RouterHolding, LeavesHeldPacketsUnchangedUntilItCanSendThem) {
  Bed bed(kRoutes);
  TestPacket p = to4("10.1.0.1");
  const auto before = p.bytes;
  EXPECT_TRUE(bed.holding->has_news()) << "at first";
  EXPECT_FALSE(bed.holding->has_news());
  EXPECT_EQ(bed.process(p), "no_neighbour");
  EXPECT_EQ(p.bytes, before);
  RouterChange change;
  change.neighbours = neighbours_of("10.1.0.1 dev wan lladdr 02:00:00:00:00:77 STALE\n");
  bed.update(change);
  EXPECT_TRUE(bed.holding->has_news());
  EXPECT_FALSE(bed.holding->lacks(p.view())) << "a device with older tables has decided";
  EXPECT_EQ(bed.process_again(p, true), "wan");
  EXPECT_EQ(p.destination_mac().bytes[5], 0x77);
  EXPECT_EQ(p.view().ipv4().ttl, 63);
}

TEST(RouterHolding, GivesUpPacketsOnceTheirNeighbourHasFailed) {
  Bed bed(kRoutes);
  TestPacket failed = to4("10.2.0.1"), other = to4("10.1.0.1");
  RouterChange change;
  change.failed = {{mapped(*parse_ipv4("10.1.0.9")), kWan}};
  bed.update(change);
  EXPECT_TRUE(bed.holding->has_news());
  EXPECT_EQ(bed.process(failed), "no_neighbour") << "a new packet: the kernel is asked again";
  EXPECT_EQ(bed.process_again(failed, false), "no_neighbour") << "it came after the news";
  EXPECT_EQ(bed.process_again(failed, true), "neighbour_unreachable");
  EXPECT_EQ(bed.process_again(other, true), "no_neighbour");
  bed.update({});
  EXPECT_EQ(bed.process_again(failed, true), "no_neighbour") << "these are other news";
}

TEST(RouterHolding, HoldsNothingWithNeighboursFromFiles) {
  RouterConfig config = config_of(kRoutes);
  config.neighbours.emplace();
  const auto router = build(std::move(config));
  const auto stage = router->make_cpu_stage();
  EXPECT_EQ(dynamic_cast<function::HoldingStage*>(stage.get()), nullptr);
}

}  // namespace
}  // namespace penstock::router
