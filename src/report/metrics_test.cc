// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "report/exposition.h"
#include "report/exposition_for_test.h"
#include "report/function_metrics.h"
#include "report/latency_histogram.h"

namespace penstock::report {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kDashboard[] = PENSTOCK_SOURCE_DIR "/examples/monitoring/grafana-dashboard.json";

FunctionReport function_named(const char* name, Json details) {
  FunctionReport function;
  function.name = name;
  function.in = {100, 6400};
  function.drop_reasons = {{"rule", 3}, {"policy", 0}};
  function.details = std::move(details);
  return function;
}

/// A report of everything that there can be.
RunReport full_report() {
  RunReport report;
  report.workers = 2;
  report.by_worker.resize(2);
  report.by_worker[1].idle = std::chrono::milliseconds{2500};
  report.by_worker[1].queue = {4096, 1 << 20};
  report.shared_queue = QueueReport{1, 2};
  report.in = {1000, 64000};
  report.dropped_by_chain = {{"queue_full", 5}};
  report.ports.resize(2);
  report.ports[0].name = "lan";
  report.ports[0].in = {1000, 64000};
  report.ports[0].interface = {{{"receive_ring_full", 7}}, {{"frames_lent", 9}}};
  report.ports[0].fragments = PortReport::Fragments{};
  report.ports[1].name = "wan";
  report.ports[1].offered = PortReport::Offered{10, std::chrono::seconds{1}};
  report.functions.push_back(function_named(
      "firewall", {{"rules", {{{"index", 0}, {"line", 10}, {"target", "drop"}, {"packets", 8}, {"bytes", 99}}}},
                   {"policy", {{"ipv4", {{"packets", 4}}}, {"ipv6", {{"packets", 5}}}}}}));
  report.functions.push_back(function_named("nids#2", {{"alerts", 12},
                                                       {"rules", {{{"gid", 1}, {"sid", 1000004}, {"alerts", 12}}}},
                                                       {"load", {{"loaded", 8}, {"left_out", 0}}},
                                                       {"stack", {{"flows", 46}, {"flows_evicted", 0}}},
                                                       {"inspection", {{"frames_over_budget", 0}}}}));
  report.functions.push_back(function_named("router", {{"ipv4", {{"routes", 17}}}, {"ipv6", {{"routes", 19}}}}));
  report.functions.push_back(
      function_named("filter", {{"filters", {{{"name", "web"}, {"match", "drop"}, {"packets", 1}, {"bytes", 64}}}}}));
  report.functions.push_back(function_named("ipsec", {{"sas",
                                                       {{{"spi", "0xc6fd21a7"},
                                                         {"source", "2001:db8::1"},
                                                         {"destination", "2001:db8::2"},
                                                         {"packets", 3},
                                                         {"bytes", 300},
                                                         {"replayed", 1},
                                                         {"integrity", 2}}}},
                                                      {"fragments", {{"received", 2}, {"dropped", 1}}}}));
  report.functions.push_back(function_named("from_outside", {{"rules", "not what others have there"}}));
  report.latencies = {{{std::chrono::microseconds{1}, 0}, {std::chrono::milliseconds{5}, 3}}, 4, 1.25};
  report.gaps.times = report.latencies;
  report.gpu = RunReport::Gpu{};
  report.gpu->proxy = {false, 2, std::chrono::milliseconds{1500}};
  return report;
}

RunFacts full_facts() {
  RunFacts facts;
  facts.version = "0.1.0";
  facts.commit = "unknown";
  facts.state = "running";
  facts.started_s = 1.7e9;
  facts.last_reload = RunFacts::Reload{true, 1.7e9};
  facts.links = {{"lan", true}};
  facts.gpu_use = {{0, 0.5}};
  return facts;
}

ReadMetrics full_metrics() {
  const RunReport report = full_report();
  return ReadMetrics(metrics_text(&report, full_facts()));
}

TEST(Metrics, AreInPrometheussFormat) { EXPECT_EQ(full_metrics().complaints, ""); }

TEST(Metrics, HaveWhatTheReportHas) {
  const ReadMetrics metrics = full_metrics();
  EXPECT_EQ(metrics.value("penstock_received_packets_total"), 1000);
  EXPECT_EQ(metrics.value("penstock_port_received_bytes_total", {{"port", "lan"}}), 64000);
  EXPECT_EQ(metrics.value("penstock_port_lost_packets_total", {{"port", "lan"}, {"place", "receive_ring_full"}}), 7);
  EXPECT_EQ(metrics.value("penstock_port_events_total", {{"port", "lan"}, {"event", "frames_lent"}}), 9);
  EXPECT_EQ(metrics.value("penstock_function_dropped_packets_total", {{"function", "firewall"}, {"reason", "rule"}}),
            3);
  EXPECT_EQ(metrics.value("penstock_chain_dropped_packets_total", {{"reason", "queue_full"}}), 5);
  EXPECT_EQ(metrics.value("penstock_worker_idle_seconds_total", {{"worker", "1"}}), 2.5);
  EXPECT_EQ(metrics.value("penstock_worker_queue_bytes", {{"worker", "1"}}), 4096);
  EXPECT_EQ(metrics.value("penstock_latency_seconds", {{"le", "0.005"}}, "_bucket"), 3);
  EXPECT_EQ(metrics.value("penstock_latency_seconds", {{"le", "+Inf"}}, "_bucket"), 4);
  EXPECT_EQ(metrics.value("penstock_latency_seconds", {}, "_sum"), 1.25);
  EXPECT_EQ(metrics.value("penstock_nids_alerts_total", {{"function", "nids#2"}}), 12);
  EXPECT_EQ(
      metrics.value("penstock_nids_rule_alerts_total", {{"function", "nids#2"}, {"gid", "1"}, {"sid", "1000004"}}), 12);
  EXPECT_EQ(metrics.value("penstock_firewall_rule_packets_total",
                          {{"function", "firewall"}, {"line", "10"}, {"index", "0"}, {"target", "drop"}}),
            8);
  EXPECT_EQ(metrics.value("penstock_gpu_busy_ratio", {{"gpu", "0"}}), 0.5);
  EXPECT_EQ(metrics.value("penstock_gpu_proxy_connected"), 0);
  EXPECT_EQ(metrics.value("penstock_gpu_proxy_losses_total"), 2);
  EXPECT_EQ(metrics.value("penstock_gpu_proxy_lost_seconds_total"), 1.5);
  EXPECT_EQ(metrics.value("penstock_state", {{"state", "running"}}), 1);
  EXPECT_EQ(metrics.value("penstock_state", {{"state", "ended"}}), 0);
}

TEST(Metrics, OfTheProcessAreThereBeforePacketsFlow) {
  RunFacts facts = full_facts();
  facts.state = "starting";
  const ReadMetrics metrics(metrics_text(nullptr, facts));
  EXPECT_EQ(metrics.complaints, "");
  EXPECT_EQ(metrics.value("penstock_state", {{"state", "starting"}}), 1);
  EXPECT_EQ(metrics.value("penstock_build_info", {{"version", "0.1.0"}, {"commit", "unknown"}}), 1);
  EXPECT_FALSE(metrics.families.contains("penstock_received_packets_total"));
}

TEST(Metrics, OfGpusAreOnlyThereOnGpus) {
  RunReport report = full_report();
  report.gpu.reset();
  const std::string text = metrics_text(&report, full_facts());
  EXPECT_THAT(text, Not(HasSubstr("gpu")));
  EXPECT_THAT(text, Not(HasSubstr("pcie")));
}

TEST(Metrics, OfAProxyAreOnlyThereWithOne) {
  RunReport report = full_report();
  report.gpu->proxy.reset();
  EXPECT_THAT(metrics_text(&report, full_facts()), Not(HasSubstr("proxy")));
}

TEST(Metrics, EscapeNames) {
  RunReport report;
  report.functions.push_back(function_named("a\"b\\c\nd\xff", nullptr));
  const std::string text = metrics_text(&report, full_facts());
  EXPECT_EQ(ReadMetrics(text).complaints, "");
  EXPECT_THAT(text, HasSubstr(R"({function="a\"b\\c\\x0ad\\xff"})"));
}

TEST(Metrics, HaveSeriesOnlyForTheRulesWithTheMostHits) {
  RunReport report;
  Json rules = Json::array();
  for (std::size_t i = 0; i < kMostSeries + 20; ++i)
    rules.push_back(
        {{"index", i}, {"line", i + 1}, {"target", "drop"}, {"packets", i < 20 ? 1 : 1000 + i}, {"bytes", 1}});
  report.functions.push_back(function_named("firewall", {{"rules", rules}}));
  const ReadMetrics metrics(metrics_text(&report, full_facts()));
  const auto& samples = metrics.families.at("penstock_firewall_rule_packets_total").samples;
  EXPECT_EQ(samples.size(), kMostSeries);
  for (const auto& [key, packets] : samples) EXPECT_GE(packets, 1020);
  EXPECT_EQ(metrics.value("penstock_function_series_left_out", {{"function", "firewall"}}), 20);
}

TEST(Metrics, HistogramsCountTimesUpToALimit) {
  LatencyHistogram times;
  times.record(std::chrono::microseconds{90}, 3);
  times.record(std::chrono::milliseconds{40});
  EXPECT_EQ(times.count() - times.count_above(std::chrono::microseconds{100}), 3U);
  EXPECT_NEAR(times.sum_ns() / 1e6, 0.27 + 40, 0.01 * 40.27);
}

/// All texts of `key` in a tree of JSON.
void collect(const Json& json, const std::string& key, std::vector<std::string>& found) {
  for (const auto& [name, value] : json.items()) {
    if (json.is_object() && name == key && value.is_string()) found.push_back(value.get<std::string>());
    if (value.is_structured()) collect(value, key, found);
  }
}

std::vector<std::string> dashboard_texts(const std::string& key) {
  std::ifstream file(kDashboard);
  std::vector<std::string> found;
  collect(Json::parse(file), key, found);
  return found;
}

TEST(GrafanaDashboard, NamesOnlyMetricsAndLabelsThatExist) {
  const ReadMetrics metrics = full_metrics();
  std::set<std::string> names, labels{"job", "instance", "le"};  // Prometheus adds the first two
  for (const auto& [name, family] : metrics.families) {
    names.insert(name);
    for (const auto& [key, value] : family.samples) {
      names.insert(name + key.first);
      for (const auto& [label, text] : key.second) labels.insert(label);
    }
  }
  std::vector<std::string> expressions = dashboard_texts("expr");
  ASSERT_GT(expressions.size(), 15U);
  for (const std::string& query : dashboard_texts("definition")) expressions.push_back(query);
  const std::regex metric("\\b(?:penstock|process)_[a-z0-9_]+"), by("\\b(?:by|on) *\\(([^)]*)\\)"),
      matcher("([a-z_]+) *=~? *\""), word("[a-z_]+");
  const auto all = [](const std::string& text, const std::regex& what, int group) {
    std::vector<std::string> found;
    for (std::sregex_iterator at(text.begin(), text.end(), what), end; at != end; ++at) found.push_back((*at)[group]);
    return found;
  };
  for (const std::string& expression : expressions) {
    const auto used = all(expression, metric, 0);
    EXPECT_FALSE(used.empty()) << expression;
    for (const std::string& name : used) EXPECT_TRUE(names.contains(name)) << name << " in " << expression;
    for (const std::string& label : all(expression, matcher, 1)) EXPECT_TRUE(labels.contains(label)) << expression;
    for (const std::string& list : all(expression, by, 1)) {
      for (const std::string& label : all(list, word, 0)) EXPECT_TRUE(labels.contains(label)) << expression;
    }
  }
  const std::regex legend("\\{\\{ *([a-z_]+) *\\}\\}");
  for (const std::string& text : dashboard_texts("legendFormat")) {
    for (const std::string& label : all(text, legend, 1)) EXPECT_TRUE(labels.contains(label)) << text;
  }
}

int shell(const std::string& command) { return std::system((command + " >/dev/null").c_str()); }

class Promtool : public ::testing::Test {
 protected:
  void SetUp() override {
    if (shell("command -v promtool") != 0) GTEST_SKIP() << "promtool is not installed (Debian package prometheus)";
  }
  static std::string file(const std::string& name, const std::string& text) {
    std::string path = ::testing::TempDir() + "/penstock-" + name;
    std::ofstream(path) << text;
    return path;
  }
};

TEST_F(Promtool, FindsNothingToImproveInTheMetrics) {
  const RunReport report = full_report();
  EXPECT_EQ(shell("promtool check metrics <" + file("metrics.txt", metrics_text(&report, full_facts()))), 0);
}

TEST_F(Promtool, AcceptsTheDashboardsExpressions) {
  Json rules = Json::array();
  for (std::string expression : dashboard_texts("expr")) {
    for (const char* const range : {"$__rate_interval", "$__range"}) {
      for (std::size_t at; (at = expression.find(range)) != std::string::npos;)
        expression.replace(at, std::string(range).size(), "5m");
    }
    rules.push_back({{"record", "test:" + std::to_string(rules.size())}, {"expr", expression}});
  }
  const Json file = {{"groups", {{{"name", "dashboard"}, {"rules", rules}}}}};
  EXPECT_EQ(shell("promtool check rules " + Promtool::file("rules.yaml", file.dump())), 0);
}

TEST_F(Promtool, AcceptsTheExamplesConfiguration) {
  EXPECT_EQ(shell("promtool check config " PENSTOCK_SOURCE_DIR "/examples/monitoring/prometheus.yml"), 0);
}

}  // namespace
}  // namespace penstock::report
