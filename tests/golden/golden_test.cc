// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole chains: each folder here is a case. `chain.yaml` is run unchanged; every capture out-x that it writes must
// contain the records of expected-x, its alerts must be the lines of expected-alerts.txt, and the counts in its report
// those of expected.json. The README of each case explains where these come from.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "golden/golden_case.h"

namespace penstock::golden {
namespace {

using nlohmann::json;

/// A chain's report in the form of expected.json: packets, drops with reasons, constructs that readers left out.
json counts_of(const CaseRun& run) {
  const json report = run.report;
  json counts{{"packets", json::object()}, {"dropped", json::object()}, {"unsupported", run.unsupported}};
  for (const auto& [what, count] : report["packets"].items()) {
    const bool is_rare = what.starts_with("generated") || what == "held";
    if (!is_rare || count != 0) counts["packets"][what] = count;
  }
  const auto add = [&](const std::string& who, const json& reasons) {
    for (const auto& [reason, count] : reasons.items()) {
      if (count != 0) counts["dropped"][who + "." + reason] = count;
    }
  };
  for (const json& function : report["functions"]) add(function["name"], function["dropped"]["reasons"]);
  add("chain", report["dropped_by_chain"]);
  return counts;
}

class Golden : public ::testing::TestWithParam<std::string> {
 protected:
  // Alerts have local times.
  static void SetUpTestSuite() {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }

  /// Runs the chain, and compares what does not depend on order.
  void run(std::vector<config::Override> overrides) {
    CaseRun run;
    ASSERT_NO_FATAL_FAILURE(case_.run(out_, std::move(overrides), run));
    EXPECT_EQ(counts_of(run), json::parse(std::ifstream(case_.folder() / "expected.json")));
  }

  /// Calls `compare` with each written capture and its expectation.
  template <typename Compare>
  void for_each_capture(Compare compare) {
    for (const auto& [port, name] : case_.written()) {
      ASSERT_TRUE(name.starts_with("out")) << name;
      SCOPED_TRACE(name);
      const CaptureFile out = read_capture_file(out_ / name);
      const CaptureFile expected = read_capture_file(case_.folder() / ("expected" + name.substr(3)));
      EXPECT_EQ(out.link_type, expected.link_type);
      compare(expected, out);
    }
  }

  /// Calls `compare` with the alerts and their expectation, if the chain alerts.
  template <typename Compare>
  void for_alerts(Compare compare) {
    const auto expected = case_.folder() / "expected-alerts.txt";
    ASSERT_EQ(case_.writes_alerts(), std::filesystem::exists(expected));
    if (case_.writes_alerts()) compare(lines_of(expected), lines_of(out_ / "fast_log"));
  }

  Case case_{root() / "tests/golden" / GetParam()};
  OutFolder out_;
};

TEST_P(Golden, SendsWhatIsExpected) {
  ASSERT_NO_FATAL_FAILURE(run({}));
  for_each_capture(
      [](const CaptureFile& expected, const CaptureFile& out) { expect_the_same(expected.records, out.records); });
  for_alerts([](const auto& expected, const auto& out) { EXPECT_EQ(out, expected); });
}

TEST_P(Golden, TwoWorkersKeepFlowsInOrder) {
  ASSERT_NO_FATAL_FAILURE(run({{"run.workers", "2", ""}}));
  for_each_capture(expect_the_same_flows);
  for_alerts([](const auto& expected, const auto& out) { EXPECT_EQ(alerts_by_rule(out), alerts_by_rule(expected)); });
}

TEST_P(Golden, BatchesOfOnePacketSendTheSame) {
  ASSERT_NO_FATAL_FAILURE(run({{"run.batch.packets", "1", ""}}));
  for_each_capture(expect_the_same_flows);
  for_alerts([](const auto& expected, const auto& out) { EXPECT_EQ(out, expected); });
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, ::testing::ValuesIn(cases()), [](const auto& one) { return one.param; });

}  // namespace
}  // namespace penstock::golden
