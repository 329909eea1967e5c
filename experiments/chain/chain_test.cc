// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/chain/chain.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/catalog.h"
#include "experiments/chain/chains.h"
#include "experiments/chain/fewest_workers.h"
#include "experiments/chain/points.h"
#include "experiments/limits.h"
#include "experiments/measured_chain.h"
#include "experiments/record_check.h"
#include "experiments/repeats.h"
#include "experiments/session.h"

namespace penstock::experiments {
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

TEST(Experiments, HaveNoFigureForWhichNoPointIsPlanned) {
  for (const Experiment* experiment : experiments()) {
    const Setting setting{.quick = false, .workers = 16, .gpus = {}, .rules = {}, .routes = {}, .stop = &kNeverStop};
    const auto trial = experiment->start(setting);
    ASSERT_TRUE(trial);
    const std::vector<Point> points = (*trial)->plan();
    for (const Figure& figure : experiment->figures()) {
      const bool shows = std::ranges::any_of(points, [&](const Point& point) {
        return satisfies(point, figure.where) && point.find(figure.x.key) != nullptr;
      });
      EXPECT_TRUE(shows) << experiment->name << ": " << figure.id;
    }
  }
}

TEST(Experiments, PlanPointsForEveryHeadline) {
  for (const Experiment* experiment : experiments()) {
    const Setting setting{.quick = false, .workers = 16, .gpus = {}, .rules = {}, .routes = {}, .stop = &kNeverStop};
    const auto trial = experiment->start(setting);
    ASSERT_TRUE(trial);
    const std::vector<Point> points = (*trial)->plan();
    EXPECT_FALSE(experiment->headlines().empty()) << experiment->name;
    for (const Conditions& conditions : experiment->headlines()) {
      EXPECT_TRUE(std::ranges::any_of(points, [&](const Point& point) { return satisfies(point, conditions); }))
          << experiment->name << ": " << conditions.front().key << '=' << conditions.front().values.front();
    }
    const auto headlines = std::ranges::count_if(points, [&](const Point& point) {
      return std::ranges::any_of(experiment->headlines(), [&](const auto& c) { return satisfies(point, c); });
    });
    EXPECT_LT(headlines, std::ssize(points)) << experiment->name << ": not all can be headlines";
  }
}

TEST(Experiments, SayHowTheyDifferFromTheirPaper) {
  for (const Experiment* experiment : experiments()) {
    const Setting setting{.quick = false, .workers = 16, .gpus = {}, .rules = {}, .routes = {}, .stop = &kNeverStop};
    const auto trial = experiment->start(setting);
    ASSERT_TRUE(trial);
    const std::vector<Point> points = (*trial)->plan();
    ASSERT_FALSE(experiment->differences().rows.empty()) << experiment->name;
    EXPECT_EQ(experiment->differences().rows.front().what, "machine") << experiment->name;
    for (const Difference& row : experiment->differences().rows) {
      for (const std::string* cell : {&row.what, &row.paper, &row.ours}) {
        EXPECT_FALSE(cell->empty()) << experiment->name << ": " << row.what;
        EXPECT_EQ(cell->find_first_of("|\n"), std::string::npos) << *cell;
      }
      EXPECT_TRUE(std::ranges::any_of(points, [&](const Point& point) { return satisfies(point, row.where); }))
          << experiment->name << ": no point has the row " << row.what;
    }
    Record record;
    record.machine.cpu = "A CPU";
    EXPECT_THAT(differences_table(experiment->differences(), record), HasSubstr("A CPU")) << experiment->name;
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
  for (const unsigned cores : {1U, 3U, 12U}) {  // 3 and 12 do not divide the memory evenly
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
  EXPECT_DOUBLE_EQ(*pcie_limit_mpps(limits, 1000, 0, 4), 240.0) << "each of four by itself";
  limits.set("pcie_both_each_way_of_4", 100.0).set("pcie_to_device_of_4", 200.0);
  EXPECT_DOUBLE_EQ(*pcie_limit_mpps(limits, 1000, 0, 4), 200.0) << "four at the same time";
  EXPECT_DOUBLE_EQ(*pcie_limit_mpps(limits, 1000, 1000, 4), 100.0);
  EXPECT_FALSE(pcie_limit_mpps(limits, 0, 0));
  EXPECT_FALSE(pcie_limit_mpps({}, 1000, 0));
}

TEST(ChainExperiment, MeasuresTheCpuTwins) {
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
  EXPECT_EQ(repeats_of(point, "mpps").size(), 2U);
  EXPECT_EQ(repeats_of(point, "busy_cores").size(), 2U);
  EXPECT_EQ(point.number("lost"), 0);
  EXPECT_EQ(point.find("bytes_up"), nullptr) << "nothing crosses PCIe";
}

/// The CPU's points that satisfy the conditions, each measured once.
std::vector<Point> measured_on_a_core(std::vector<Condition> only, bool quick, milliseconds duration) {
  Options options;
  options.quick = quick;
  options.repeats = 1;
  options.duration = duration;
  options.workers = 1;
  options.only = std::move(only);
  options.only.push_back({"processor", {"cpu"}});
  auto session = Session::open(chain_experiment(), options, kNeverStop);
  EXPECT_TRUE(session) << to_string(session.error());
  if (!session) return {};
  const Errors errors = session->run([](const Progress&) {});
  EXPECT_TRUE(errors.empty()) << to_string(errors);
  return session->record().points;
}

TEST(ChainExperiment, MeasuresTheCpuTwinsOfTheLongestChainAndComparesOutputWithInput) {
  const std::vector<Point> points =
      measured_on_a_core({{"chain", {"C4"}}, {"sweep", {"size"}}}, true, milliseconds{30});
  ASSERT_EQ(points.size(), 1U);
  const Point& point = points.front();
  EXPECT_GT(point.number("gbps"), 0.001);
  EXPECT_EQ(point.number("dropped"), 0) << "all of the packets go all the way";
  EXPECT_EQ(point.text("checked"), "true");
}

TEST(ChainExperiment, ComparesWithPointsOfTheRecordThatItResumes) {
  const Setting setting{.quick = true,
                        .repeats = 1,
                        .duration = milliseconds{30},
                        .workers = 1,
                        .gpus = {},
                        .rules = {},
                        .routes = {},
                        .stop = &kNeverStop};
  const auto trial = chain_experiment().start(setting);
  ASSERT_TRUE(trial);
  Point cpu;
  for (const Point& point : (*trial)->plan()) {
    if (!satisfies(point, {{"chain", {"C4"}}, {"sweep", {"size"}}, {"size", {"1518"}}})) continue;
    if (point.text("mode") == "shared") {
      Point kept = point;
      set_repeats(kept, "mpps", {1e6});
      (*trial)->remember(kept);
    }
    if (point.text("mode") == "cpu") cpu = point;
  }
  ASSERT_FALSE(cpu.empty());
  ASSERT_TRUE((*trial)->measure(cpu, {}));
  EXPECT_GT(cpu.number("shared_by_this"), 1000);
}

TEST(ChainExperiment, KnowsTheTimeOfAFunctionFromThatOfItsBatches) {
  Point point;
  point.set("functions", 2);
  EXPECT_TRUE(times_of_function_us(point).empty());
  set_repeats(point, "segment_us_nids", {200, 300, 250});
  set_repeats(point, "segment_us_ipsec", {100, 110, 120});
  EXPECT_EQ(times_of_function_us(point.set("mode", "own-stacks")), (Repeats{200, 300, 250}));
  EXPECT_EQ(times_of_function_us(point.set("mode", "shared")), (Repeats{150, 205, 185}));
}

TEST(FewestWorkers, ReachNearlyThePciLimitOrTheHighestRate) {
  Record record;
  EXPECT_EQ(fewest_workers(record, Style::markdown), "");
  const auto add = [&](double gpus, double workers, double gbps, double limit) {
    Point& point = record.points.emplace_back();
    point.set("sweep", "gpus").set("chain", "C4").set("gpus", gpus).set("workers", workers);
    point.set("gbps", gbps).set("limit_gbps", limit);
  };
  add(1, 1, 100, 400);
  add(1, 2, 381, 400);
  add(1, 3, 390, 400);
  add(2, 4, 500, 800);
  add(2, 2, 490, 800);
  const std::string table = fewest_workers(record, Style::markdown);
  EXPECT_THAT(table, HasSubstr("| C4 | 1 | 390 (3 workers) | 98 % | 2 | 2 |"));
  EXPECT_THAT(table, HasSubstr("| C4 | 2 | 500 (4 workers) | 62 % | none | 2 |"));
}

TEST(ChainExperiment, MeasuresAGatewayThatTranslates) {
  const std::vector<Point> points =
      measured_on_a_core({{"chain", {"nat-router", "stateful-router"}}, {"size", {"64"}}}, false, milliseconds{30});
  ASSERT_EQ(points.size(), 2U);
  for (const Point& point : points) {
    EXPECT_GT(point.number("mpps"), 0.001);
    EXPECT_EQ(point.number("dropped"), 0);
    EXPECT_EQ(point.number("workers"), 1);
  }
}

/// Connections that are replayed must be followed each time, not only the first time.
TEST(ChainExperiment, FollowsAllConnectionsIfItSaysSo) {
  const std::vector<Point> points = measured_on_a_core({{"sweep", {"state"}}}, true, milliseconds{200});
  ASSERT_EQ(points.size(), 2U);
  const Point& packets = points[0];
  const Point& streams = points[1];
  EXPECT_EQ(packets.text("tracking"), "packets");
  EXPECT_EQ(packets.find("flows"), nullptr);
  EXPECT_EQ(streams.text("tracking"), "streams");
  EXPECT_GT(streams.number("flows"), 0);
  EXPECT_GT(streams.number("tcp_sessions"), 0);
  EXPECT_GT(streams.number("stream_bytes"), 600) << "of 753 in a packet, less what was open at the end";
  EXPECT_EQ(streams.number("stream_gaps"), 0);
  EXPECT_EQ(streams.number("unknown_connections"), 0);
  for (const Point& point : points) EXPECT_EQ(point.text("checked"), "true");
}

TEST(ChainExperiment, RunsThePapersChainsOverConnectionsWithStreamsAndWithout) {
  const Setting setting{.quick = false, .workers = 16, .gpus = {}, .rules = {}, .routes = {}, .stop = &kNeverStop};
  const auto trial = chain_experiment().start(setting);
  ASSERT_TRUE(trial);
  std::set<std::string> planned;
  for (const Point& point : (*trial)->plan()) {
    if (point.text("sweep") != "state") continue;
    planned.insert(fmt::format("{} {} {} {}", point.text("chain"), point.text("size"), point.text("processor"),
                               point.text("tracking")));
  }
  std::set<std::string> expected;
  for (const char* chain : {"C1", "C2", "C3", "C4"}) {
    for (const char* size : {"64", "512", "1518"}) {
      for (const char* processor : {"gpu", "cpu"}) {
        for (const char* tracking : {"packets", "streams"}) {
          expected.insert(fmt::format("{} {} {} {}", chain, size, processor, tracking));
        }
      }
      expected.insert(fmt::format("{} {} gpu automaton", chain, size));
    }
  }
  EXPECT_EQ(planned, expected);
}

TEST(ChainExperiment, RunsThePapersChainsInAllWays) {
  const Setting setting{.quick = false, .workers = 16, .gpus = {}, .rules = {}, .routes = {}, .stop = &kNeverStop};
  const auto trial = chain_experiment().start(setting);
  ASSERT_TRUE(trial);
  std::map<std::string, std::set<std::string>> sizes;
  for (const Point& point : (*trial)->plan()) {
    if (point.text("sweep") == "size") {
      sizes[point.text("chain") + ' ' + point.text("tables") + ' ' + point.text("mode")].insert(point.text("size"));
    }
  }
  for (const char* chain : {"C1", "C2", "C3", "C4"}) {
    for (const char* mode : {"shared", "no-memshare", "unshared", "own-stacks", "cpu"}) {
      EXPECT_EQ(sizes[fmt::format("{} paper {}", chain, mode)],
                (std::set<std::string>{"64", "128", "256", "512", "1024", "1518", "imix"}))
          << chain << ' ' << mode;
      EXPECT_EQ(sizes[fmt::format("{} heavy {}", chain, mode)], (std::set<std::string>{"64", "512", "1518", "imix"}));
    }
  }
}

/// The paper's chains keep state of flows. All of it is followed, also through the stateful firewall.
TEST(ChainExperiment, MeasuresTheLongestChainWithStateOfFlows) {
  const std::vector<Point> points = measured_on_a_core({{"sweep", {"stateful"}}}, true, milliseconds{200});
  ASSERT_EQ(points.size(), 1U);
  const Point& point = points.front();
  EXPECT_EQ(point.text("chain"), "C4-stateful-nic");
  EXPECT_EQ(point.number("dropped"), 0) << "no packet is out of its connection's window";
  EXPECT_GT(point.number("tcp_sessions"), 0);
  EXPECT_EQ(point.number("stream_gaps"), 0);
  EXPECT_EQ(point.text("checked"), "true");
}

TEST(ChainExperiment, MeasuresAChainWithABranch) {
  const std::vector<Point> points =
      measured_on_a_core({{"sweep", {"branch"}}, {"size", {"512"}}}, false, milliseconds{50});
  ASSERT_EQ(points.size(), 1U);
  EXPECT_GT(points.front().number("mpps"), 0.001);
  EXPECT_EQ(points.front().number("dropped"), 0);
  EXPECT_EQ(points.front().text("checked"), "true");
}

std::vector<Point> planned_in(const char* sweep) {
  const Setting setting{.quick = false, .workers = 16, .gpus = {}, .rules = {}, .routes = {}, .stop = &kNeverStop};
  std::vector<Point> points;
  for (const Point& point : plan_chains(setting)) {
    if (point.text("sweep") == sweep) points.push_back(point);
  }
  return points;
}

TEST(ChainExperiment, ComparesAllWaysOfSharingWithStateOfFlows) {
  std::map<std::string, std::set<std::string>> sizes;
  for (const Point& point : planned_in("stateful")) {
    sizes[point.text("chain") + ' ' + point.text("mode")].insert(point.text("size"));
    EXPECT_EQ(point.text("tracking"), point.text("processor") == "gpu" ? "automaton" : "streams");
  }
  EXPECT_EQ(sizes.size(), 4U * 5);
  for (const auto& [configuration, of_it] : sizes) EXPECT_EQ(of_it.size(), 6U) << configuration;
}

TEST(ChainExperiment, TurnsOffEachThingAloneAndAllTogether) {
  for (const char* size : {"64", "1518"}) {
    std::vector<std::string> off;
    for (const Point& point : planned_in("ablation")) {
      if (point.text("size") == size) off.push_back(point.text("off"));
    }
    EXPECT_EQ(off, (std::vector<std::string>{"nothing", "packets", "packets+parsing", "packets+parsing+stack", "graphs",
                                             "small-batch-kernels", "deferred-finish", "all"}))
        << "what is compared with comes first";
  }
  EXPECT_EQ(planned_in("ablation-latency").size(), 2U * 8 * 2);
}

TEST(ChainExperiment, ComparesThePairsOfSharesWithTheModelsChoice) {
  const std::vector<Point> points = planned_in("share-grid");
  ASSERT_EQ(points.size(), 2U * (16 + 1));
  EXPECT_EQ(points[16].text("share_of_nids"), "auto") << "after those that it is compared with";
  EXPECT_EQ(points[16].text("size"), points[0].text("size"));
}

/// A record with all points, of which each has a value for each figure that shows it.
TEST(ChainExperiment, DrawsAllPointsOfACompleteRecord) {
  const Experiment& experiment = chain_experiment();
  Record record;
  record.experiment = "chain";
  record.complete = true;
  record.machine = {.cpu = "a CPU", .cores = 16, .memory_bytes = 1, .gpus = {{0, "a GPU"}}, .driver = "1"};
  const Setting setting{.quick = false, .workers = 16, .gpus = {}, .rules = {}, .routes = {}, .stop = &kNeverStop};
  record.points = plan_chains(setting);
  double value = 1;
  for (Point& point : record.points) {
    for (const Figure& figure : experiment.figures()) {
      if (!satisfies(point, figure.where) || figure.bars || point.find(figure.y.key) != nullptr) continue;
      point.set(figure.y.key, value = value < 90 ? value + 0.5 : 1);
    }
  }
  const Errors errors = check_record(record, experiment, "record");
  EXPECT_TRUE(errors.empty()) << to_string(errors);
  for (const Figure& figure : experiment.figures()) {
    if (figure.bars) continue;
    EXPECT_TRUE(has_points(figure, record)) << figure.id;
    EXPECT_THAT(table(figure, record, Style::markdown), HasSubstr(figure.title));
    EXPECT_THAT(plot_svg(figure, record), HasSubstr("</svg>")) << figure.id;
  }
}

TEST(ChainExperiment, RecordsTimelinesOfSharedAndUnsharedPackets) {
  const Setting setting{.quick = false, .workers = 16, .gpus = {}, .rules = {}, .routes = {}, .stop = &kNeverStop};
  const auto trial = chain_experiment().start(setting);
  ASSERT_TRUE(trial);
  std::multiset<std::string> modes;
  for (const Point& point : (*trial)->plan()) {
    if (point.text("sweep") != "timeline") continue;
    modes.insert(point.text("mode"));
    EXPECT_EQ(point.text("chain"), "C4");
    EXPECT_EQ(point.text("tables"), "paper");
    EXPECT_EQ(point.text("size"), "1518");
    EXPECT_EQ(point.text("processor"), "gpu");
  }
  EXPECT_EQ(modes, (std::multiset<std::string>{"no-memshare", "shared"}));
}

TEST(Chains, HaveTheFunctionsOfTheirLetters) {
  const Workplace place;
  Chains chains(place);
  const MeasuredChain c4 = chains.chain("C4", "paper");
  std::vector<std::size_t> at;
  for (const char* function : {"firewall", "nids", "router", "ipsec"}) at.push_back(c4.functions.find(function));
  EXPECT_TRUE(std::ranges::is_sorted(at)) << c4.functions;
  EXPECT_NE(at.back(), std::string::npos) << c4.functions;
  EXPECT_THAT(c4.undone_by, HasSubstr("direction: in"));
  EXPECT_EQ(c4.undone.find("ipsec"), std::string::npos) << c4.undone;
  EXPECT_NE(c4.undone.find("router"), std::string::npos) << c4.undone;
  EXPECT_TRUE(chains.chain("inspect", "paper").undone_by.empty());
}

TEST(Chains, BranchByThePortOfTheRouter) {
  const Workplace place;
  Chains chains(place);
  const MeasuredChain branch = chains.chain("C4-branch", "paper");
  EXPECT_TRUE(branch.to_dmz);
  const std::size_t fork = branch.functions.find("fork: [{when: {out_port: dmz}, chain: [nids: ");
  EXPECT_NE(fork, std::string::npos) << branch.functions;
  EXPECT_LT(branch.functions.find("router: "), fork);
  EXPECT_LT(branch.functions.find("{chain: []}]", fork), branch.functions.find("ipsec: ", fork));
}

TEST(Chains, SpreadFlowsOverTheSas) {
  const XfrmTexts texts = tunnels_text(1000);
  const auto count = [](const std::string& text, std::string_view what) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(count(texts.state, "spi 0x"), 1000U);
  EXPECT_EQ(count(texts.policy, "dir out"), 1000U);
  EXPECT_EQ(count(texts.policy, "src 10."), 999U);
  EXPECT_NE(texts.policy.find("src 10.0.64.0/18 "), std::string::npos) << "the second of 1,024 parts";
  EXPECT_NE(texts.policy.find("src 0.0.0.0/0 "), std::string::npos) << "the last takes what is left";
  EXPECT_EQ(count(tunnels_text(1).policy, "src 0.0.0.0/0 "), 1U);
}

TEST(Chains, UseTheUsersRulesForTheirFunction) {
  const Workplace place;
  const std::string detection = place.put("own.rules", detection_rules_text(5, true));
  const std::string firewall = place.put("firewall.txt", rules_text(5));
  Setting setting{.gpus = {}, .rules = detection, .routes = {}, .stop = &kNeverStop};
  {
    Chains chains(place);
    ASSERT_TRUE(chains.take(setting));
    EXPECT_THAT(chains.chain("inspect", "heavy").functions, HasSubstr("nids: {rules: [\"" + detection));
    EXPECT_EQ(chains.chain("inspect", "paper").functions.find(detection), std::string::npos) << "of which it has 147";
  }
  setting.rules = firewall;
  Chains chains(place);
  ASSERT_TRUE(chains.take(setting));
  EXPECT_THAT(chains.chain("inspect", "paper").functions, HasSubstr("firewall: {rules: \"" + firewall));
}

TEST(ChainExperiment, ReportsMistakesInTheUsersFilesBeforeItMeasures) {
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

TEST(ChainRunner, ReportsAChainThatCannotRun) {
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

TEST(ChainRunner, CountsTheBytesBetweenHostAndDevice) {
  using namespace std::chrono_literals;
  report::RunReport report;
  report.elapsed = 2s;
  report.cpu_time = 5s;
  report.stack_time = 1s;
  report.in = {1'000'000, 60'000'000};
  report.dropped.packets = 5000;
  report.dropped_by_chain = {{"queue_full", 1000}};
  report.bytes_to_device = 80'000'000;
  report.bytes_to_host = 20'000'000;
  report.batches.count = 100;
  report.functions.resize(3);
  report.functions[0].name = "nids";
  report.functions[0].multiprocessors = 33;
  report.functions[0].share_times = {{132, 0}};
  report.functions[1].name = "router";
  report.functions[1].segments = 2;
  report.functions[1].segment_time = 15us;
  report.functions[2].name = "ipsec";
  report.functions[2].share_times = {{132, 0}, {66, 0}};
  report.latency_us = {{"p50", 12.5}};
  const Point limits = Point().set("pcie_both_each_way", 40.0);
  const Point results = results_of(report, limits, 2);
  EXPECT_DOUBLE_EQ(*results.number("mpps"), 0.5);
  EXPECT_DOUBLE_EQ(*results.number("gbps"), 0.5e6 * 64 * 8 / 1e9) << "with check sequence";
  EXPECT_DOUBLE_EQ(*results.number("bytes_up"), 80);
  EXPECT_DOUBLE_EQ(*results.number("limit_mpps"), 2 * 500.0) << "of two GPUs";
  EXPECT_DOUBLE_EQ(*results.number("busy_cores"), 2.5);
  EXPECT_DOUBLE_EQ(*results.number("stack_percent"), 20);
  EXPECT_DOUBLE_EQ(*results.number("lost"), 0.001);
  EXPECT_DOUBLE_EQ(*results.number("dropped"), 0.004) << "by functions";
  EXPECT_DOUBLE_EQ(*results.number("latency_p50"), 12.5);
  EXPECT_DOUBLE_EQ(*results.number("segment_us_router"), 7.5);
  EXPECT_EQ(results.find("segment_us_nids"), nullptr) << "which begins none";
  EXPECT_DOUBLE_EQ(*results.number("share_nids"), 33);
  EXPECT_DOUBLE_EQ(*results.number("share_ipsec"), 132) << "all";
  EXPECT_EQ(results.find("share_router"), nullptr);
}

}  // namespace
}  // namespace penstock::experiments
