// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/live_status.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock::control {
namespace {

using Json = nlohmann::ordered_json;

Json status() {
  Json error = {{"file", "chain.yaml"},   {"line", 3},        {"column", 1},
                {"message", "a warning"}, {"found", nullptr}, {"expected", nullptr}};
  Json many = Json::array();
  for (int i = 0; i < 50; ++i) many.push_back(error);
  return {{"penstock", {{"version", "0.1.0"}}},
          {"chain", "/etc/penstock/chain.yaml"},
          {"state", "running"},
          {"started", "2026-01-01T00:00:00Z"},
          {"elapsed_s", 1.5},
          {"processor", "cpu"},
          {"ports", Json::array()},
          {"last_reload", nullptr},
          {"cautions", many},
          {"without_effect", Json::array()},
          {"unsupported", Json::array()}};
}

report::RunReport report_with(Json details) {
  report::RunReport report;
  report::FunctionReport& function = report.functions.emplace_back();
  function.name = "firewall";
  function.details = std::move(details);
  return report;
}

TEST(LiveStatus, ShowsTheRulesWithTheMostPackets) {
  Json rules = Json::array();
  for (int i = 0; i < 5000; ++i)
    rules.push_back({{"line", i + 1}, {"packets", i == 4000 ? 9'000'000 : i}, {"text", std::string(5000, 'x')}});
  const report::RunReport report = report_with({{"rules", rules}});
  const Json json = live_json(Json::object(), status(), &report, {});
  ASSERT_EQ(json["top_rules"].size(), kMostShown);
  EXPECT_EQ(json["top_rules"][0]["name"], "line 4001");
  EXPECT_EQ(json["top_rules"][0]["count"], 9'000'000);
  EXPECT_EQ(json["top_rules"][1]["name"], "line 5000");
  EXPECT_TRUE(json["top_alerts"].empty());
  EXPECT_TRUE(json["alerts"].is_null()) << "no function has alerts";
  EXPECT_EQ(json["warnings"].size(), kMostShown);
  EXPECT_LT(json.dump().size(), 32U << 10) << "whatever the rules are";
}

TEST(LiveStatus, ShowsAlertsByRule) {
  const report::RunReport report = report_with(
      {{"alerts", 12}, {"rules", {{{"gid", 1}, {"sid", 7}, {"alerts", 12}, {"message", "bad"}}, {{"gid", 1}}}}});
  const Json json = live_json(Json::object(), status(), &report, {});
  EXPECT_EQ(json["alerts"], 12);
  EXPECT_EQ(json["top_alerts"].dump(), R"([{"function":"firewall","name":"1:7","text":"bad","count":12}])");
}

TEST(LiveStatus, TakesWhateverOtherFunctionsReport) {
  for (const char* const details :
       {"null", "[1]", R"({"rules": 5, "alerts": "many"})", R"({"rules": [1, {"packets": -1}]})"}) {
    const report::RunReport report = report_with(Json::parse(details));
    const Json json = live_json(Json::object(), status(), &report, {});
    EXPECT_TRUE(json["top_rules"].empty()) << details;
    EXPECT_TRUE(json["alerts"].is_null()) << details;
  }
}

TEST(LiveStatus, HasNoReportBeforePacketsFlow) {
  const Json json = live_json(Json::object(), status(), nullptr, {});
  EXPECT_TRUE(json["report"].is_null());
  EXPECT_EQ(json["state"], "running");
}

TEST(LiveStatus, DescribesForks) {
  run::Chain chain;
  chain.forks.push_back({0, 2, {plan::Arm{0, 2, {plan::ArmCondition{{0}, {}}}, "in_port lan"}}});
  const Json plan = plan_json(chain);
  EXPECT_EQ(
      plan["forks"].dump(),
      R"([{"first":0,"last":2,"arms":[{"first":0,"last":2,"condition":"in_port lan"}],"all_take_an_arm":false}])");
}

}  // namespace
}  // namespace penstock::control
