// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/proxy_advise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command_for_test.h"

namespace penstock::cli {
namespace {

using ::testing::HasSubstr;

/// By the kept record.
Outcome advise(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"advise", PENSTOCK_SOURCE_DIR "/bench/results/h200-xeon-16/sharing.json"});
  return outcome_of_command(add_proxy_advise, arguments);
}

TEST(ProxyAdviseCommand, PrintsWhatToStart) {
  const Outcome outcome = advise({"--tenant", "ipsec:60Gbps", "--tenant", "nids:100Gbps:2ms", "--tenant", "nids"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("penstock proxy serve SOCKET --scheduler deadline --on-device 32MiB\n"));
  EXPECT_THAT(outcome.out, HasSubstr("run: {proxy: SOCKET, proxy_profile: 4q, workers: 1}    # ipsec\n"));
  EXPECT_THAT(outcome.out, HasSubstr("proxy_profile: 4q, workers: 1, proxy_latency: 2000us}    # nids\n"));
  EXPECT_THAT(outcome.out, HasSubstr("NVIDIA H200"));
}

TEST(ProxyAdviseCommand, PrintsJson) {
  const Outcome outcome = advise({"--tenant", "nids:10Gbps", "--trainings", "1", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["tenants"].size(), 1U);
  EXPECT_EQ(json["tenants"][0]["profile"], "16q");
  EXPECT_FALSE(json["tenants"][0].contains("expected_gbps"));
  EXPECT_EQ(json["mps"], true);
  EXPECT_GT(json["reasons"].size(), 2U);
}

TEST(ProxyAdviseCommand, ReportsAllMistakes) {
  const Outcome outcome = advise({"--tenant", "ipsec:3", "--tenant", "nids:1Gbps:0ms", "--tenant", "ipsec:"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("--tenant ipsec:3: wrong rate of a tenant: found '3', expected bits per second"));
  EXPECT_THAT(outcome.err, HasSubstr("--tenant nids:1Gbps:0ms: wrong bound of a tenant: found '0ms', expected a time"));
  EXPECT_THAT(outcome.err, HasSubstr("--tenant ipsec:: wrong rate of a tenant: found '', expected bits per second"));
}

TEST(ProxyAdviseCommand, SaysWhyTenantsDoNotFit) {
  const Outcome outcome = advise({"--tenant", "ipsec:200Gbps", "--tenant", "nids:300Gbps"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("sharing.json: the tenants do not fit: found rates that take"));
}

TEST(ProxyAdviseCommand, NamesARecordThatIsNone) {
  const Outcome outcome = outcome_of_command(add_proxy_advise, {"advise", "/nowhere/sharing.json", "--tenant", "nids"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("/nowhere/sharing.json"));
}

}  // namespace
}  // namespace penstock::cli
