// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/forwarding/forwarding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "config/chain_file.h"
#include "experiments/busy_cores.h"
#include "experiments/forwarding/arrangement.h"
#include "experiments/forwarding/network.h"
#include "experiments/forwarding/prober.h"
#include "experiments/namespaces_for_test.h"
#include "experiments/program.h"
#include "experiments/session.h"
#include "experiments/workload.h"

namespace penstock::experiments {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

const ReceiveCores kFirstCore{{0}, {0}};

/// Tests that need root and iproute2.
class Forwarding : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0 || !is_installed("ip")) GTEST_SKIP() << "needs root and iproute2";
    const auto network = ForwardingNetwork::make(folder_, 1, kFirstCore);
    if (!network) GTEST_SKIP() << "no network namespaces here: " << to_string(network.error());
    if (const auto on = (*network)->set_forwarding(true); !on) GTEST_SKIP() << to_string(on.error());
  }
  void TearDown() override { EXPECT_FALSE(any_namespace()); }

  const Workplace folder_;
};

Options options_of(std::vector<Condition> only) {
  Options options;
  options.quick = true;
  options.repeats = 1;
  options.only = std::move(only);
  return options;
}

/// The points of a run with these options.
void measure(std::vector<Condition> only, Record& record) {
  const std::atomic<bool> stop{false};
  auto session = Session::open(forwarding_experiment(), options_of(std::move(only)), stop);
  ASSERT_TRUE(session) << to_string(session.error());
  const Errors errors = session->run({});
  ASSERT_TRUE(errors.empty()) << to_string(errors);
  EXPECT_TRUE(any_namespace()) << "or the test for their removal shows nothing";
  record = session->record();
}

TEST_F(Forwarding, MeasuresLinuxAndPenstock) {
  Record record;
  measure({{"sweep", {"rate"}}, {"system", {"linux", "af_packet"}}, {"processor", {"cpu"}}, {"chain", {"router"}}},
          record);
  ASSERT_EQ(record.points.size(), 2U);
  for (const Point& point : record.points) {
    EXPECT_GT(point.number("mpps"), 0) << describe(point);
    EXPECT_GT(point.number("offered_mpps"), 0) << describe(point);
    EXPECT_GE(point.number("lost_percent"), 0) << describe(point);
    if (busy_core_seconds()) {
      EXPECT_GT(point.number("busy_cores"), 0) << describe(point);
    }
  }
}

TEST_F(Forwarding, MeasuresDelaysAtAShareOfTheRateItself) {
  Record record;
  measure({{"system", {"linux"}}, {"load_percent", {"0", "50"}}}, record);
  ASSERT_EQ(record.points.size(), 2U);
  for (const Point& point : record.points) {
    EXPECT_GT(point.number("p50_us"), 0) << describe(point);
    EXPECT_GE(point.number("p99_us"), point.number("p50_us")) << describe(point);
    EXPECT_GE(point.number("max_us"), point.number("p99_us")) << describe(point);
    EXPECT_GT(point.number("probes"), 0) << describe(point);
  }
  EXPECT_GT(record.points[1].number("offered_mpps"), record.points[0].number("offered_mpps"));
}

TEST_F(Forwarding, RemovesItsNetworkAfterCtrlC) {
  std::atomic<bool> stop{false};
  std::thread user([&] {
    while (!any_namespace()) std::this_thread::sleep_for(milliseconds{5});
    std::this_thread::sleep_for(milliseconds{500});
    stop = true;
  });
  {
    Options options = options_of({{"sweep", {"rate"}}, {"system", {"af_packet"}}, {"processor", {"cpu"}}});
    options.duration = seconds{600};
    auto session = Session::open(forwarding_experiment(), options, stop);
    ASSERT_TRUE(session) << to_string(session.error());
    EXPECT_TRUE(session->run({}).empty());
    EXPECT_TRUE(session->record().points.empty());
    EXPECT_FALSE(session->record().complete);
  }
  user.join();
}

Prober::Path probe_path() {
  return {{ForwardingNetwork::client(), ForwardingNetwork::kHostInterface},
          {ForwardingNetwork::server(), ForwardingNetwork::kHostInterface},
          ForwardingNetwork::kGatewayMac,
          *parse_ipv4("10.0.1.2"),
          *parse_ipv4("203.0.113.1")};
}

TEST_F(Forwarding, ProbesArriveOnlyIfTheGatewayForwards) {
  const auto network = ForwardingNetwork::make(folder_, 1, kFirstCore);
  ASSERT_TRUE(network) << to_string(network.error());
  for (const bool on : {true, false}) {
    ASSERT_TRUE((*network)->set_forwarding(on));
    const auto before = (*network)->counters();
    const auto prober = Prober::start(probe_path());
    ASSERT_TRUE(prober) << to_string(prober.error());
    std::this_thread::sleep_for(milliseconds{100});
    const Prober::Delays delays = (*prober)->finish();
    const auto after = (*network)->counters();
    ASSERT_TRUE(before && after);
    // A system's queue of received packets is one for all interfaces of a core: what else runs there may fill it.
    const std::uint64_t to_gateway = after->to_gateway - before->to_gateway;
    const std::uint64_t dropped = after->dropped_at_gateway - before->dropped_at_gateway;
    const std::uint64_t to_server = after->to_server - before->to_server;
    EXPECT_GT(delays.sent, 0U);
    EXPECT_EQ(to_gateway + dropped, delays.sent);
    EXPECT_LE(to_server, on ? to_gateway : 0);
    EXPECT_LE(delays.us.size(), to_server);
    EXPECT_EQ(delays.us.empty(), !on);
    EXPECT_TRUE(std::ranges::is_sorted(delays.us));
  }
}

TEST_F(Forwarding, AProberNamesAnInterfaceThatIsNotThere) {
  Prober::Path path = probe_path();
  path.to = {"", "penstock-none"};
  const auto prober = Prober::start(path);
  ASSERT_FALSE(prober);
  EXPECT_THAT(to_string(prober.error()), HasSubstr("penstock-none"));
}

TEST(ForwardingDelays, QuantilesAreDelaysThatWereMeasured) {
  const Prober::Delays delays{5, {1, 2, 3, 10}};
  EXPECT_EQ(delays.lost(), 1U);
  EXPECT_EQ(delays.quantile(0.5), 2);
  EXPECT_EQ(delays.quantile(0.99), 10);
  EXPECT_EQ((Prober::Delays{1, {7}}.quantile(0.5)), 7);
}

TEST(ForwardingPlan, HasEachPointOnce) {
  for (const unsigned threads : {1U, 2U, 8U, 64U}) {
    std::set<std::string> seen;
    for (const Point& point : forwarding_points(false, threads)) EXPECT_TRUE(seen.insert(describe(point)).second);
    for (const Point& point : forwarding_points(true, threads)) EXPECT_TRUE(seen.contains(describe(point)));
  }
}

TEST(ForwardingPlan, HasFourWorkersOnlyOnLargeMachines) {
  const auto most_workers = [](unsigned threads) {
    double most = 0;
    for (const Point& point : forwarding_points(false, threads)) most = std::max(most, *point.number("workers"));
    return most;
  };
  EXPECT_EQ(most_workers(7), 2);
  EXPECT_EQ(most_workers(8), 4);
}

TEST(ForwardingPlan, GivesEachCoreOneTaskIfThereAreEnough) {
  const ForwardingCores cores = forwarding_cores(2, {1, 2, 3, 5, 7, 9, 11, 13});
  EXPECT_EQ(cores.receive.gateway, (CpuList{1, 2}));
  EXPECT_EQ(cores.workers, (CpuList{3, 5}));
  EXPECT_EQ(cores.receive.server, (CpuList{7, 9}));
  EXPECT_EQ(cores.generator, (CpuList{11, 13}));
  EXPECT_EQ(cores.generators, 2U);
}

TEST(ForwardingPlan, BindsNoThreadIfThereAreTooFewCores) {
  const ForwardingCores cores = forwarding_cores(2, {0, 1, 2});
  EXPECT_EQ(cores.receive.gateway, (CpuList{0, 1}));
  EXPECT_EQ(cores.receive.server, (CpuList{1, 2}));
  EXPECT_TRUE(cores.workers.empty());
  EXPECT_TRUE(cores.generator.empty());
  EXPECT_EQ(cores.generators, 1U);
  EXPECT_EQ(forwarding_cores(4, {3}).receive.gateway, (CpuList{3}));
}

TEST(ForwardingPlan, EveryPlannedChainCanBeLoaded) {
  const Workplace folder;
  const GatewayFiles files{folder.put("routes.txt", ForwardingNetwork::routes()),
                           folder.put("neighbours.txt", ForwardingNetwork::neighbours()),
                           folder.put("firewall.rules", rules_text(kForwardingRules))};
  const auto load = [&](const std::string& text) {
    const auto loaded = config::load_chain(folder.put("chain.yaml", text), {.overrides = {}, .only_plan = true});
    EXPECT_TRUE(loaded) << text << to_string(loaded.error());
  };
  for (const Point& point : forwarding_points(false, 8)) {
    const ForwardingCores cores = forwarding_cores(static_cast<unsigned>(*point.number("workers")), {0});
    const std::string system = point.text("system");
    if (system != "linux" && !system.starts_with("send_")) load(gateway_chain(point, cores, files, ""));
    load(load_chain(point, "af_packet", cores, std::nullopt));
    load(load_chain(point, "af_xdp", cores, 0.125));
  }
}

TEST(ForwardingPlan, BindsThreadsToTheirCores) {
  const Point point = Point().set("system", "af_packet").set("processor", "cpu").set("size", 64).set("workers", 2);
  const ForwardingCores cores = forwarding_cores(2, {1, 2, 3, 5, 7, 9, 11, 13});
  EXPECT_THAT(gateway_chain(point, cores, {}, ""), HasSubstr("  workers: 2\n  cores: \"3,5\"\n"));
  EXPECT_THAT(load_chain(point, "af_packet", cores, std::nullopt), HasSubstr("  workers: 2\n  cores: \"11,13\"\n"));
}

}  // namespace
}  // namespace penstock::experiments
