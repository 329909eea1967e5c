// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/offload/offload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <set>
#include <vector>

#include "experiments/offload/rates.h"
#include "experiments/offload/tuple_key.h"
#include "experiments/session.h"
#include "experiments/workload.h"
#include "nf/firewall/rule_reader.h"
#include "nf/firewall/tuple_reader.h"

namespace penstock::experiments {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

const std::atomic<bool> kNeverStop{false};
constexpr Timing kShort{2, milliseconds{2}, &kNeverStop};

std::unique_ptr<LookupWork> some_routing(Traffic traffic = Traffic::spread) {
  std::vector<router::Route4> routes;
  for (const Ipv4Prefix& prefix : route_prefixes(2000)) {
    routes.push_back({prefix, static_cast<std::uint32_t>(routes.size())});
  }
  return std::move(*make_routing(routes, traffic));
}
std::unique_ptr<LookupWork> some_firewall(Traffic traffic = Traffic::spread) {
  return std::move(*make_firewall(std::move(firewall::read_rules(rules_text(200), "rules", {})->value), traffic));
}

std::vector<TupleKey> tuples_of(const LookupWork& work) {
  std::vector<TupleKey> tuples(kKeys);
  std::memcpy(tuples.data(), work.keys().data(), work.keys().size());
  return tuples;
}

/// Of the keys.
double share(const LookupWork& work, const std::function<bool(const TupleKey&)>& is_so) {
  return static_cast<double>(std::ranges::count_if(tuples_of(work), is_so)) / kKeys;
}

/// An engine that gives a wrong value for one key of the sample.
class Liar final : public LookupEngine {
 public:
  explicit Liar(const LookupEngine& honest) : honest_(honest) {}
  void look_up(std::size_t first, std::size_t count, std::uint32_t* values) const noexcept override {
    honest_.look_up(first, count, values);
    const std::size_t lie = kSampleStep * 5;
    if (first <= lie && lie < first + count) values[lie - first] ^= 1;
  }
  DeviceTable to_device() const override { return honest_.to_device(); }
  std::size_t memory_bytes() const noexcept override { return honest_.memory_bytes(); }

 private:
  const LookupEngine& honest_;
};

TEST(OffloadLookups, GiveTheSameAnswersInAllEngines) {
  const std::array works{some_routing(), some_firewall()};
  const std::array<std::vector<const char*>, 2> engines{{{"dir24", "trie4", "trie1"}, {"bitvector", "linear"}}};
  for (std::size_t w = 0; w < works.size(); ++w) {
    std::set<std::uint32_t> answers;
    for (const char* name : engines[w]) {
      const auto engine = works[w]->engine(name);
      ASSERT_TRUE(engine) << to_string(engine.error());
      std::vector<std::uint32_t> values(10'000);
      (*engine)->look_up(0, values.size(), values.data());
      for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], works[w]->expected(i)) << name << ' ' << i;
      answers.insert(values.begin(), values.end());
    }
    EXPECT_GT(answers.size(), 100U) << "keys meet many routes, and many rules";
  }
}

TEST(OffloadTraffic, HasTheProtocolsOfItsName) {
  const auto is_udp = [](const TupleKey& tuple) { return key_of(tuple).protocol() == ip_protocol::kUdp; };
  const auto is_tcp = [](const TupleKey& tuple) { return key_of(tuple).protocol() == ip_protocol::kTcp; };
  for (const auto& [traffic, of_udp] : {std::pair(Traffic::tcp, 0.1), {Traffic::balanced, 0.5}, {Traffic::udp, 0.9}}) {
    const auto work = some_firewall(traffic);
    EXPECT_NEAR(share(*work, is_udp), of_udp, 0.01) << name_of(traffic);
    EXPECT_NEAR(share(*work, is_tcp), 1 - of_udp, 0.01) << name_of(traffic);
  }
}

TEST(OffloadTraffic, OfAFloodMeetsTheLastRuleAlone) {
  const auto work = some_firewall(Traffic::flood);
  EXPECT_GT(share(*work, [](const TupleKey& tuple) { return tuple.destination == 0xc0000201; }), 0.89);
  const std::vector<TupleKey> tuples = tuples_of(*work);
  std::set<std::uint32_t> sources, answers;
  for (std::size_t i = 0; i < 10'000; ++i) {
    if (tuples[i].destination != 0xc0000201) continue;
    sources.insert(tuples[i].source);
    answers.insert(work->expected(i));
  }
  EXPECT_GT(sources.size(), 8'000U);
  EXPECT_EQ(answers, (std::set<std::uint32_t>{199})) << "the last of 200 rules";
}

TEST(OffloadTraffic, OfBurstsRepeatsAddresses) {
  const auto different = [](const LookupWork& work) {
    std::vector<std::uint32_t> addresses(kKeys);
    std::memcpy(addresses.data(), work.keys().data(), work.keys().size());
    std::size_t changes = 0;
    for (std::size_t i = 1; i < addresses.size(); ++i) changes += addresses[i] != addresses[i - 1] ? 1 : 0;
    return static_cast<double>(changes) / kKeys;
  };
  EXPECT_GT(different(*some_routing()), 0.99);
  EXPECT_NEAR(different(*some_routing(Traffic::bursts)), 1 / 16.5, 0.01);
  EXPECT_LT(different(*some_routing(Traffic::flood)), 0.2);
}

TEST(OffloadRates, AreMeasuredForEachRepeat) {
  const auto work = some_firewall();
  const auto engine = work->engine("bitvector");
  ASSERT_TRUE(engine);
  for (const unsigned cores : {1U, 3U}) {
    for (const std::size_t batch : {std::size_t{256}, kKeys}) {
      const auto rates = measure_on_cores(*work, **engine, cores, batch, kShort);
      ASSERT_TRUE(rates) << to_string(rates.error());
      ASSERT_EQ(rates->size(), 2U);
      for (const double rate : *rates) EXPECT_GT(rate, 1e4);
    }
  }
}

TEST(OffloadRates, AreRefusedIfAResultIsWrong) {
  const auto work = some_routing();
  const auto engine = work->engine("trie4");
  ASSERT_TRUE(engine);
  const auto rates = measure_on_cores(*work, Liar(**engine), 1, 1024, kShort);
  ASSERT_FALSE(rates);
  EXPECT_THAT(to_string(rates.error()), HasSubstr("the CPU's result for key 4985 is wrong: found "));
}

TEST(OffloadRates, EndEarlyWhenStopped) {
  const std::atomic<bool> stop{true};
  const auto work = some_routing();
  const auto engine = work->engine("dir24");
  ASSERT_TRUE(engine);
  const auto start = std::chrono::steady_clock::now();
  static_cast<void>(measure_on_cores(*work, **engine, 2, 256, {3, std::chrono::hours{1}, &stop}));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes{1});
}

TEST(TupleKeys, GiveTheKeysOfTheirTuples) {
  const auto keys = firewall::read_tuples("1.2.3.4 5.6.7.8 tcp 1000 80\n1.2.3.4 5.6.7.8 icmp 0 0\n", "");
  ASSERT_TRUE(keys);
  TupleKey tuple{0x01020304, 0x05060708, 1000, 80,
                 std::uint32_t{ip_protocol::kTcp} << classify::kKindDetailBits | 0x10};
  EXPECT_EQ(key_of(tuple).source, (*keys)[0].source);
  EXPECT_EQ(key_of(tuple).destination, (*keys)[0].destination);
  EXPECT_EQ(key_of(tuple).source_port, 1000U);
  EXPECT_EQ(key_of(tuple).destination_port, 80U);
  EXPECT_EQ(key_of(tuple).protocol(), ip_protocol::kTcp);
  EXPECT_EQ(key_of(tuple).detail(), 0x10U) << "TCP's flags";
  tuple.kind = std::uint32_t{ip_protocol::kIcmp} << classify::kKindDetailBits;
  EXPECT_EQ(key_of(tuple).source_port, classify::kNoTransportPort);
}

TEST(OffloadPlan, SweepsBatchesSizesAndStreams) {
  Setting setting;
  setting.workers = 16;
  setting.stop = &kNeverStop;
  const auto plan_of = [&](bool quick) {
    setting.quick = quick;
    return (*offload_experiment().start(setting))->plan();
  };
  const auto values = [](const std::vector<Point>& plan, const char* key, const std::vector<Condition>& where) {
    std::set<double> different;
    for (const Point& point : plan) {
      if (satisfies(point, where) && point.number(key)) different.insert(*point.number(key));
    }
    return different;
  };
  const std::vector<Point> full = plan_of(false);
  for (const char* engine : {"dir24", "trie4", "trie1", "bitvector", "linear"}) {
    const std::vector<Condition> of_batches{{"engine", {engine}}, {"sweep", {"batch"}}};
    EXPECT_EQ(values(full, "batch", of_batches).size(), 13U) << engine;
    EXPECT_EQ(*values(full, "batch", of_batches).begin(), 256) << engine;
    EXPECT_EQ(*values(full, "batch", of_batches).rbegin(), 1 << 20) << engine;
    EXPECT_EQ(values(full, "streams", of_batches), (std::set<double>{1, 2, 4})) << engine;
    EXPECT_EQ(values(full, "cores", of_batches), (std::set<double>{1, 16})) << engine;
  }
  EXPECT_EQ(values(full, "rules", {{"sweep", {"rules"}}}),
            (std::set<double>{32, 64, 128, 256, 512, 1024, 2048, 4096, 8192}));
  EXPECT_EQ(values(full, "routes", {{"sweep", {"routes"}}}),
            (std::set<double>{1000, 4000, 16'000, 64'000, 256'000, 1'000'000}));
  EXPECT_LT(plan_of(true).size(), full.size() / 2);
  // Every point must be shown in a figure.
  for (const Point& point : full) {
    Record record;
    record.points = {Point(point).set("mpps", 1)};
    record.points.front().set("memory_percent", 1);
    bool shown = false;
    for (const Figure& figure : offload_experiment().figures()) shown |= has_points(figure, record);
    EXPECT_TRUE(shown) << describe(point);
  }
}

TEST(OffloadFrames, AreMeasuredOnTheCpuAndChecked) {
  Options options;
  options.repeats = 1;
  options.duration = milliseconds{20};
  options.workers = 1;
  const Workplace place;
  options.routes = place.put("routes", routes_text(1500));
  options.only = {{"sweep", {"frames"}}, {"processor", {"cpu"}}, {"size", {"64"}}};
  auto session = Session::open(offload_experiment(), options, kNeverStop);
  ASSERT_TRUE(session) << to_string(session.error());
  const Errors errors = session->run([](const Progress&) {});
  EXPECT_TRUE(errors.empty()) << to_string(errors);
  ASSERT_EQ(session->record().points.size(), 2U);
  for (const Point& point : session->record().points) EXPECT_GT(point.number("mpps"), 0.001) << describe(point);
}

TEST(OffloadPlan, TakesTheUsersFiles) {
  const Workplace place;
  Setting setting;
  setting.stop = &kNeverStop;
  setting.rules = place.put("rules", rules_text(50));
  setting.routes = place.put("routes", routes_text(1500));
  auto trial = offload_experiment().start(setting);
  ASSERT_TRUE(trial) << to_string(trial.error());
  std::set<std::string> routes, rules;
  for (const Point& point : (*trial)->plan()) {
    (point.text("function") == "router" ? routes : rules)
        .insert(point.text(point.text("function") == "router" ? "routes" : "rules"));
  }
  EXPECT_EQ(routes, (std::set<std::string>{"1000", "1500"}));
  EXPECT_EQ(rules, (std::set<std::string>{"50"}));

  setting.routes = place.put("routes", "fd00::/8 dev lan\n");
  EXPECT_THAT(to_string(offload_experiment().start(setting).error()), HasSubstr("no IPv4 routes"));
  setting.routes = place.put("routes", "10.0.0/8 dev lan\n");
  EXPECT_THAT(to_string(offload_experiment().start(setting).error()), HasSubstr("/routes:1:1: "));
}

}  // namespace
}  // namespace penstock::experiments
