// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/live/live.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "config/chain_file.h"
#include "experiments/live/arrangement.h"
#include "experiments/live/network.h"
#include "experiments/live/recommend.h"
#include "experiments/namespaces_for_test.h"
#include "experiments/program.h"
#include "experiments/session.h"
#include "experiments/workload.h"

namespace penstock::experiments {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

/// Tests that need root, iproute2 and iperf3.
class Live : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0 || !is_installed("ip") || !is_installed("iperf3"))
      GTEST_SKIP() << "needs root, iproute2 and iperf3";
    const Workplace folder;
    const auto network = LiveNetwork::make(folder);
    if (!network) GTEST_SKIP() << "no network namespaces here: " << to_string(network.error());
  }
  void TearDown() override { EXPECT_FALSE(any_namespace()); }
};

Options options_of(std::vector<Condition> only) {
  Options options;
  options.quick = true;
  options.duration = milliseconds{1000};
  options.only = std::move(only);
  return options;
}

TEST_F(Live, MeasuresBothArrangementsOnACopyOfTheTraffic) {
  const std::atomic<bool> stop{false};
  auto session = Session::open(live_experiment(), options_of({{"processor", {"cpu"}}, {"rate", {"100"}}}), stop);
  ASSERT_TRUE(session) << to_string(session.error());
  const Errors errors = session->run({});
  ASSERT_TRUE(errors.empty()) << to_string(errors);
  EXPECT_TRUE(any_namespace()) << "or the test for their removal shows nothing";
  const Record& record = session->record();
  ASSERT_EQ(record.points.size(), 2U);
  for (const Point& point : record.points) {
    EXPECT_GT(point.number("mbps"), 20) << describe(point);
    EXPECT_GT(point.number("sent_mbps"), 20) << describe(point);
    EXPECT_GT(point.number("arrived_kpps"), 1) << describe(point);
    EXPECT_GT(point.number("delay_ms"), 0) << describe(point);
    EXPECT_GT(point.number("cpu_percent"), 0) << describe(point);
  }
}

TEST_F(Live, RemovesItsNetworkAfterCtrlC) {
  std::atomic<bool> stop{false};
  std::thread user([&] {
    while (!any_namespace()) std::this_thread::sleep_for(milliseconds{5});
    std::this_thread::sleep_for(milliseconds{500});
    stop = true;
  });
  const auto start = std::chrono::steady_clock::now();
  {
    Options options = options_of({{"system", {"ours"}}, {"processor", {"cpu"}}, {"rate", {"100"}}});
    options.duration = seconds{60};
    auto session = Session::open(live_experiment(), options, stop);
    ASSERT_TRUE(session) << to_string(session.error());
    EXPECT_TRUE(session->run({}).empty());
    EXPECT_TRUE(session->record().points.empty());
    EXPECT_FALSE(session->record().complete);
  }
  user.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds{30});
}

TEST_F(Live, RemovesItsNetworkAfterAnError) {
  const Workplace folder;
  const std::atomic<bool> stop{false};
  Options options = options_of({{"system", {"ours"}}, {"processor", {"cpu"}}, {"rate", {"100"}}});
  options.rules = folder.put("bad.rules", "alert tcp any any -> any any (content:\"x\"; depth:what; sid:1;)\n");
  auto session = Session::open(live_experiment(), options, stop);
  ASSERT_TRUE(session) << to_string(session.error());
  const Errors errors = session->run({});
  ASSERT_FALSE(errors.empty());
  EXPECT_THAT(to_string(errors), HasSubstr("system=ours processor=cpu buffer=none rate=100 headline=true: "));
}

Point point(const char* system, const char* processor, const char* buffer, double delay_ms, double lost,
            double cpu_percent) {
  return Point()
      .set("system", system)
      .set("processor", processor)
      .set("buffer", buffer)
      .set("rate", "400")
      .set("delay_ms", delay_ms)
      .set("lost_percent", lost)
      .set("waiting_percent", 0)
      .set("cpu_percent", cpu_percent);
}

Record made_up() {
  Record record;
  record.points = {point("capture", "cpu", "none", 1, 0, 1), point("araujo", "cpu", "none", 80, 30, 70),
                   point("araujo", "gpu", "256KiB", 20, 10, 40), point("araujo", "gpu", "1MiB", 60, 0, 20),
                   point("araujo", "gpu", "4MiB", 160, 0, 10)};
  return record;
}

TEST(LiveRecommendation, LosesLeastWithinTheBoundThenUsesTheCpuLeast) {
  const Record record = made_up();
  EXPECT_EQ(recommended(record, "400", 10), nullptr);
  EXPECT_EQ(recommended(record, "400", 50)->text("buffer"), "256KiB");
  EXPECT_EQ(recommended(record, "400", 100)->text("buffer"), "1MiB");
  EXPECT_EQ(recommended(record, "400", 250)->text("buffer"), "4MiB");
  EXPECT_EQ(recommended(record, "800", 250), nullptr);
}

TEST(LiveRecommendation, IsShownWithTheSpeedups) {
  const std::string text = live_tables(made_up(), Style::markdown);
  EXPECT_THAT(text, HasSubstr("| 256KiB | 4* |")) << "both lost packets";
  EXPECT_THAT(text, HasSubstr("| 1MiB | 1.33 |"));
  EXPECT_THAT(text, HasSubstr("| 400 | GPU (256KiB) 10.0 % lost | GPU (1MiB) | GPU (4MiB) | GPU (4MiB) |"));
  EXPECT_EQ(live_tables({}, Style::terminal), "");
}

TEST(LiveRecommendation, SaysWhereTheRateWasNotReached) {
  Record record = made_up();
  record.points[3].set("sent_mbps", 399.0);
  EXPECT_THAT(live_tables(record, Style::markdown), HasSubstr("| 400 | GPU (256KiB)"));
  record.points[3].set("sent_mbps", 300.0);
  EXPECT_THAT(live_tables(record, Style::markdown), HasSubstr("| 400 (300 sent) | GPU (256KiB)"));
}

TEST(LiveRecommendation, IsAChainFileThatCanBeLoaded) {
  const Workplace folder;
  std::size_t chains = 0;
  for (const ChainFile& file : live_chain_files(made_up())) folder.put(file.name, file.text);
  for (const ChainFile& file : live_chain_files(made_up())) {
    if (!file.name.ends_with(".yaml")) continue;
    ++chains;
    const auto loaded = config::load_chain(folder.path(file.name), {.overrides = {}, .only_plan = true});
    ASSERT_TRUE(loaded) << file.text << to_string(loaded.error());
    EXPECT_EQ(loaded->chain.settings.queueing, run::Queueing::shared);
    EXPECT_EQ(loaded->chain.settings.streams, 16U);
  }
  EXPECT_EQ(chains, 4U);
}

TEST(LiveArrangement, EveryPlannedChainCanBeLoaded) {
  const Workplace folder;
  const std::string rules = folder.put("live.rules", live_rules());
  for (const Point& planned : live_points(false)) {
    if (planned.text("system") == "veth") continue;
    const std::string text = live_chain(planned, "eth0", "", rules, "");
    const auto loaded = config::load_chain(folder.put("chain.yaml", text), {.overrides = {}, .only_plan = true});
    ASSERT_TRUE(loaded) << text << to_string(loaded.error());
    const bool his = planned.text("system") == "araujo";
    EXPECT_EQ(loaded->chain.settings.queueing, his ? run::Queueing::shared : run::Queueing::per_worker);
    EXPECT_EQ(loaded->chain.settings.workers, his ? 3U : planned.text("system") == "ours" ? 4U : 1U);
  }
}

}  // namespace
}  // namespace penstock::experiments
