// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/proxy_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace penstock::cli {
namespace {

using ::testing::HasSubstr;

nlohmann::json status() {
  return {{"device", "GPU"},
          {"device_memory", 1 << 30},
          {"multiprocessor_shares", "all"},
          {"scheduler", "weighted"},
          {"restarts", 0},
          {"device_lost", false},
          {"tenants",
           {{{"name", "lan"},
             {"pid", 7},
             {"profile", "2q"},
             {"batches", 1},
             {"packets", 64},
             {"bytes_to_device", 0},
             {"bytes_to_host", 0},
             {"waiting_seconds", 0.5},
             {"device_seconds", 0.5},
             {"charged_seconds", 0.5},
             {"transfer_seconds_estimate", 0.5},
             {"kernel_seconds_estimate", 0.5},
             {"latency_p99_us", 20},
             {"device_memory", 0},
             {"device_memory_most", 1}}}}};
}

TEST(ProxyStatus, ListsTenants) {
  const auto table = status_table("sock", status().dump());
  ASSERT_TRUE(table) << to_string(table.error());
  EXPECT_THAT(*table, HasSubstr("GPU, 1.0 GiB of memory, scheduler weighted\n"));
  EXPECT_THAT(*table, HasSubstr("\nlan "));
}

TEST(ProxyStatus, HeadingsStandAboveLongNamesToo) {
  nlohmann::json long_name = status();
  long_name["tenants"][0]["name"] = "examples/tenants/branch/branch.yaml";
  for (const nlohmann::json& json : {status(), long_name}) {
    const std::string table = status_table("sock", json.dump()).value();
    const std::size_t heading = table.find("tenant "), row = table.find('\n', heading) + 1;
    EXPECT_EQ(table.find("profile", heading) + 7 - heading, table.find("2q", row) + 2 - row) << table;
  }
}

TEST(ProxyStatus, NamesAnAnswerOfAnotherService) {
  nlohmann::json other_type = status(), missing = status(), other_tenants = status();
  other_type["device"] = 3;
  missing["tenants"][0].erase("pid");
  other_tenants["tenants"] = {1};
  for (const std::string& text : {std::string("{}"), std::string("[]"), std::string("3"), std::string("\x1b[2J"),
                                  std::string(), other_type.dump(), missing.dump(), other_tenants.dump()}) {
    const auto table = status_table("sock", text);
    ASSERT_FALSE(table) << text;
    EXPECT_THAT(to_string(table.error()), ::testing::StartsWith("sock: not an answer of a proxy: found '")) << text;
    EXPECT_THAT(to_string(table.error()),
                HasSubstr(", expected what a `penstock proxy serve` of this release answers"));
    EXPECT_FALSE(check_metrics("sock", text)) << text;
  }
  EXPECT_TRUE(check_metrics("sock", "# TYPE penstock_proxy_device_lost gauge\npenstock_proxy_device_lost 0\n"));
}

}  // namespace
}  // namespace penstock::cli
