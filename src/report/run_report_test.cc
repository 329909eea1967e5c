// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::report {
namespace {

using ::testing::HasSubstr;

TEST(RunTables, ShowTheMostFrequentDropReasonsFirst) {
  RunReport report;
  DropCounts& reasons = report.functions.emplace_back().drop_reasons;
  reasons = {{"a", 1}, {"b", 20}, {"none", 0}, {"c", 3000}, {"d", 4}, {"e", 20}};
  EXPECT_THAT(to_tables(report), HasSubstr("  c 3,000, b 20, e 20, d 4, a 1\n"));
  reasons.emplace_back("f", 5);
  EXPECT_THAT(to_tables(report), HasSubstr("  c 3,000, b 20, e 20, f 5, d 4, and 1 other reason: 1\n"));
  reasons.emplace_back("g", 2);
  EXPECT_THAT(to_tables(report), HasSubstr("d 4, and 2 other reasons: 3\n"));
  report.dropped_by_chain = {{"no_route", 1}, {"queue_full", 2}};
  EXPECT_THAT(to_tables(report), HasSubstr("  queue_full 2, no_route 1\n"));
}

TEST(RunReport, ListsAllReasonsInTheirOrder) {
  RunReport report;
  report.functions.emplace_back().drop_reasons = {{"z", 0}, {"a", 7}};
  EXPECT_EQ(to_json(report)["functions"][0]["dropped"]["reasons"].dump(), R"({"z":0,"a":7})");
  EXPECT_FALSE(to_json(report).contains("gpu"));
  EXPECT_FALSE(to_json(report)["functions"][0].contains("details"));
}

TEST(RunReport, SaysWhetherARunHasItsProxy) {
  RunReport report;
  report.gpu = RunReport::Gpu{};
  EXPECT_FALSE(to_json(report)["gpu"].contains("proxy"));
  report.gpu->proxy = {true, 3, std::chrono::milliseconds{250}};
  EXPECT_EQ(to_json(report)["gpu"]["proxy"].dump(), R"({"connected":true,"losses":3,"without_s":0.25})");
}

}  // namespace
}  // namespace penstock::report
