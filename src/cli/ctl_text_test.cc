// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/ctl_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "report/run_report.h"

namespace penstock::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

/// A run on a GPU after `seconds`, with counters that grow in proportion.
Json stats_after(std::uint64_t seconds) {
  report::RunReport report;
  report.processor = "gpu";
  report.workers = 1;
  report.elapsed = std::chrono::seconds(seconds);
  report.in = {1'000'000 * seconds, 100'000'000 * seconds};
  report.by_worker.push_back({report.in, {}, {}, {}, {}, 400 * seconds, {}, {}});
  report.functions.resize(1);
  report.functions[0].name = "firewall";
  report.functions[0].in = report.in;
  report.functions[0].held = {seconds, 64 * seconds};
  report.functions[0].drop_reasons = {{"denied", 2'000 * seconds}, {"never", 0}};
  report.dropped_by_chain = {{"queue_full", 30'000 * seconds}};
  report.ports.resize(1);
  report.ports[0].name = "lan/\x1b[31m~1";
  report.ports[0].in = report.in;
  report.ports[0].interface = {{{"receive_ring_full", 5'000 * seconds}}, {}};
  report.gpu = {{0}, "whole", 700 * seconds, 0, 0, 0, 1 << 20, 1 << 20};
  report.bytes_to_device = 125'000'000 * seconds;
  report.latency_us = {{"p50", 10}, {"p99", 20}};
  Json json = report::to_json(report);
  json["chain"] = "chain.yaml";
  return json;
}

TEST(CtlText, ShowsCountsSinceTheStart) {
  const std::string text = stats_text(stats_after(10));
  EXPECT_THAT(text, ContainsRegex("\nlan[^ ]* +10,000,000 +8,000,000,000 "));
  EXPECT_THAT(text, ContainsRegex("\nfirewall: denied +20,000\n"));
  EXPECT_THAT(text, HasSubstr("\nfirewall holds 10 packets\n"));
  EXPECT_THAT(text, Not(HasSubstr("/s")));
}

TEST(CtlText, ShowsRatesBetweenTwoAnswers) {
  const std::string text = rates_text(stats_after(10), stats_after(12));
  EXPECT_THAT(text, HasSubstr("packets/s in"));
  EXPECT_THAT(text, ContainsRegex("\nlan[^ ]* +1 M +800 M +0 +0 +5 k\n")) << text;
  EXPECT_THAT(text, ContainsRegex("\nfirewall +1 M +0 +0 +0\n")) << text;
  EXPECT_THAT(text, ContainsRegex("batches/s\n0 +1 M +0 +0 +0 +400\n")) << text;
  EXPECT_THAT(text, ContainsRegex("memory\n0 +700 +1 G +0 +0 +0 +1.0 MiB\n")) << text;
}

TEST(CtlText, SaysWhetherTheRunHasItsProxy) {
  Json stats = stats_after(10);
  EXPECT_THAT(stats_text(stats), Not(HasSubstr("proxy")));
  stats["gpu"]["proxy"] = {{"connected", false}, {"losses", 1}, {"without_s", 2.5}};
  EXPECT_THAT(stats_text(stats), HasSubstr("\nNOT CONNECTED to the proxy; lost 1 time, 2.5 s without it\n"));
  stats["gpu"]["proxy"] = {{"connected", true}, {"losses", 2}, {"without_s", 2.5}};
  EXPECT_THAT(rates_text(stats_after(9), stats),
              HasSubstr("\nconnected to the proxy; lost 2 times, 2.5 s without it\n"));
}

TEST(CtlText, SaysWhichProcessesTheRunHas) {
  Json status = {{"penstock", {{"version", "1"}, {"commit", "c"}}},
                 {"pid", 7},
                 {"chain", "chain.yaml"},
                 {"state", "running"},
                 {"started", "today"},
                 {"elapsed_s", 1.5},
                 {"processor", "gpu"},
                 {"workers", 1},
                 {"functions", Json::array()},
                 {"ports", Json::array()},
                 {"reloads", 0},
                 {"last_reload", nullptr}};
  for (const char* const kind : {"without_effect", "cautions", "unsupported"}) status[kind] = Json::array();
  EXPECT_THAT(status_text(status), Not(HasSubstr("connected"))) << "of an earlier version";
  status["processes"] = {{{"function", nullptr}, {"socket", "p.sock"}, {"connected", false}, {"losses", 2}},
                         {{"function", "nids"}, {"socket", "n.sock"}, {"connected", true}, {"losses", 0}}};
  EXPECT_THAT(status_text(status), HasSubstr("\nproxy at p.sock: NOT CONNECTED; lost 2 times\n"
                                             "process of nids at n.sock: connected\n"));
}

TEST(CtlText, ShowsTheMostFrequentReasonsForDropsFirst) {
  const std::string text = rates_text(stats_after(10), stats_after(12));
  ASSERT_THAT(text, HasSubstr("chain: queue_full"));
  EXPECT_LT(text.find("chain: queue_full"), text.find("firewall: denied"));
  EXPECT_THAT(text, Not(HasSubstr("never"))) << "no packets";
}

TEST(CtlText, ControlsNoTerminal) { EXPECT_THAT(stats_text(stats_after(1)), Not(HasSubstr("\x1b"))); }

TEST(CtlText, ShowsWhatIsNewSinceTheLastAnswer) {
  Json before = stats_after(10);
  before["functions"][0]["dropped"]["reasons"].erase("denied");
  EXPECT_THAT(rates_text(before, stats_after(12)), HasSubstr("firewall: denied"));
}

TEST(CtlText, RefusesOtherResults) {
  EXPECT_THROW(static_cast<void>(stats_text(Json::object())), Json::exception);
  EXPECT_THROW(static_cast<void>(status_text(Json::array())), Json::exception);
  EXPECT_THROW(static_cast<void>(reload_text({{"outcome", 7}})), Json::exception);
}

}  // namespace
}  // namespace penstock::cli
