// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiment/chain/chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "experiment/catalog.h"
#include "experiment/limits.h"
#include "experiment/measured_chain.h"
#include "experiment/session.h"

namespace penstock::experiment {
namespace {

using std::chrono::milliseconds;
using ::testing::Each;
using ::testing::HasSubstr;

const std::atomic<bool> kNeverStop{false};

TEST(Experiments, ShowEveryPlannedPointInAFigure) {
  for (const Experiment* experiment : experiments()) {
    for (const bool quick : {false, true}) {
      const Setting setting{.quick = quick, .workers = 16, .gpus = {}, .rules = {}, .routes = {}, .stop = &kNeverStop};
      const auto trial = experiment->start(setting);
      ASSERT_TRUE(trial);
      for (const Point& point : (*trial)->plan()) {
        const bool shown = std::ranges::any_of(experiment->figures(),
                                               [&](const Figure& figure) { return satisfies(point, figure.where); });
        EXPECT_TRUE(shown) << experiment->name << ": " << describe(point);
      }
    }
  }
}

TEST(Experiments, PlanNoPointTwice) {
  for (const Experiment* experiment : experiments()) {
    for (const unsigned workers : {1U, 2U, 6U, 16U}) {
      const Setting setting{
          .quick = false, .workers = workers, .gpus = {}, .rules = {}, .routes = {}, .stop = &kNeverStop};
      const auto trial = experiment->start(setting);
      ASSERT_TRUE(trial);
      std::set<std::string> planned;
      for (const Point& point : (*trial)->plan()) {
        EXPECT_TRUE(planned.insert(describe(point)).second) << experiment->name << ": " << describe(point);
      }
    }
  }
}

TEST(Limits, AreMeasuredByAnyNumberOfCores) {
  for (const unsigned cores : {1U, 3U, 12U}) {  // of the latter two, each has no whole share of the memory
    const Point limits = measure_limits(cores, {}, kNeverStop);
    EXPECT_GT(limits.number("memory_copy_all_cores"), 0.01) << cores;
  }
}

TEST(Limits, PcieCarriesMoreOneWayThanBoth) {
  const Point both = Point().set("pcie_both_each_way", 40.0);
  Point limits = both;
  limits.set("pcie_to_device", 60.0).set("pcie_to_host", 50.0);
  EXPECT_DOUBLE_EQ(*pcie_limit_mpps(limits, 1000, 0), 60.0) << "nothing comes back";
  EXPECT_DOUBLE_EQ(*pcie_limit_mpps(limits, 0, 1000), 50.0) << "nothing goes there";
  EXPECT_DOUBLE_EQ(*pcie_limit_mpps(limits, 1000, 1000), 40.0);
  EXPECT_DOUBLE_EQ(*pcie_limit_mpps(limits, 1000, 500), 48.0) << "between the two: 60 / 1.25";
  EXPECT_DOUBLE_EQ(*pcie_limit_mpps(limits, 500, 1000), 50 / 1.125) << "by the rate of the direction that carries more";
  EXPECT_DOUBLE_EQ(*pcie_limit_mpps(both, 1000, 0), 40.0) << "where the rate of one direction was not measured";
  EXPECT_FALSE(pcie_limit_mpps(limits, 0, 0));
  EXPECT_FALSE(pcie_limit_mpps({}, 1000, 0));
}

TEST(ChainExperiment, MeasuresTheTwins) {
  Options options;
  options.quick = true;
  options.repeats = 2;
  options.duration = milliseconds{30};
  options.workers = 1;
  options.only = {{"processor", {"cpu"}}, {"size", {"64"}}};
  auto session = Session::open(chain_experiment(), options, kNeverStop);
  ASSERT_TRUE(session) << to_string(session.error());
  EXPECT_TRUE(session->run([](const Progress&) {}).empty());
  ASSERT_EQ(session->record().points.size(), 1U);
  const Point& point = session->record().points.front();
  EXPECT_GT(point.number("mpps"), 0.01);
  EXPECT_LE(point.number("mpps_min"), point.number("mpps"));
  EXPECT_EQ(point.number("lost"), 0);
  EXPECT_EQ(point.find("bytes_up"), nullptr) << "nothing crosses PCIe";
}

TEST(ChainExperiment, TakesTheUsersFilesAndTellsOfTheirMistakesBeforeItMeasures) {
  const Workplace place;
  const std::string routes = place.put("my \"routes\".txt", "default via 192.0.2.1 dev wan\n10.0.0.0/8 dev wan\n");
  Setting setting{.quick = true, .workers = 1, .gpus = {}, .rules = {}, .routes = routes, .stop = &kNeverStop};
  EXPECT_TRUE(chain_experiment().start(setting));
  setting.routes = std::filesystem::relative(routes).string();
  EXPECT_TRUE(chain_experiment().start(setting)) << setting.routes;
  setting.routes = place.put("wrong.txt", "10.0.0.0/33 dev wan\n");
  const auto wrong = chain_experiment().start(setting);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(to_string(wrong.error()), HasSubstr("wrong.txt:1"));
}

TEST(ChainRunner, TellsOfAChainThatCannotRun) {
  ChainRunner runner(kNeverStop);
  MeasuredChain chain;
  chain.functions = "[router: {routes: nowhere.txt}]";
  const Setting setting{
      .repeats = 1, .duration = milliseconds{10}, .gpus = {}, .rules = {}, .routes = {}, .stop = &kNeverStop};
  Point point;
  const auto run = runner.measure(point, chain, {}, setting);
  ASSERT_FALSE(run);
  EXPECT_THAT(to_string(run.error()), HasSubstr("nowhere.txt"));
}

TEST(ChainRunner, CountsWhatPassesBetweenHostAndDevice) {
  const nlohmann::ordered_json report{{"elapsed_s", 2.0},
                                      {"cpu_s", 5.0},
                                      {"packets", {{"in", 1'000'000}, {"dropped", 5000}}},
                                      {"bytes", {{"in", 60'000'000}}},
                                      {"pcie", {{"to_device_bytes", 80'000'000}, {"to_host_bytes", 20'000'000}}},
                                      {"batches", {{"count", 100}}},
                                      {"dropped_by_chain", {{"queue_full", 1000}}},
                                      {"latency_us", {{"p50", 12.5}}}};
  const Point limits = Point().set("pcie_both_each_way", 40.0);
  const Point results = results_of(report, limits, 2);
  EXPECT_DOUBLE_EQ(*results.number("mpps"), 0.5);
  EXPECT_DOUBLE_EQ(*results.number("gbps"), 0.5e6 * 64 * 8 / 1e9) << "with check sequence";
  EXPECT_DOUBLE_EQ(*results.number("bytes_up"), 80);
  EXPECT_DOUBLE_EQ(*results.number("limit_mpps"), 2 * 500.0) << "of two GPUs";
  EXPECT_DOUBLE_EQ(*results.number("busy_cores"), 2.5);
  EXPECT_DOUBLE_EQ(*results.number("lost"), 0.001);
  EXPECT_DOUBLE_EQ(*results.number("dropped"), 0.004) << "by functions";
  EXPECT_DOUBLE_EQ(*results.number("latency_p50"), 12.5);
}

}  // namespace
}  // namespace penstock::experiment
