// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/record_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "experiments/catalog.h"

namespace penstock::experiments {
namespace {

using ::testing::HasSubstr;

/// Of the experiment chain: a rate by size, and a timeline.
Record good() {
  Record record;
  record.experiment = "chain";
  record.limits.set("core_dollars", 191).set("core_watts", 6.3);
  record.points.push_back(Point()
                              .set("chain", "C4")
                              .set("tables", "paper")
                              .set("sweep", "size")
                              .set("size", "64")
                              .set("mode", "shared")
                              .set("processor", "gpu")
                              .set("gbps", 117.6)
                              .set("limit_gbps", 164)
                              .set("dollars", 3000));
  record.points.push_back(Point()
                              .set("chain", "C4")
                              .set("sweep", "timeline")
                              .set("mode", "shared")
                              .set("transfers_per_ms", 20)
                              .set("transfers", "nids: 12.5 0 84.2 | router: 100 0 5"));
  return record;
}

std::string mistakes(const std::function<void(Record&)>& change) {
  Record record = good();
  change(record);
  return to_string(check_record(record, *find_experiment("chain"), "r.json"));
}

TEST(RecordCheck, FindsNothingInAGoodRecord) {
  EXPECT_EQ(mistakes([](Record&) {}), "");
  EXPECT_EQ(mistakes([](Record& record) { record.points.clear(); }), "") << "a run that was stopped early";
}

TEST(RecordCheck, FindsTransfersThatAreGarbled) {
  EXPECT_EQ(mistakes([](Record& r) { r.points[1].set("transfers", "nids: 12.5 0 eighty"); }),
            "r.json: points[1].transfers: wrong value: found 'nids: 12.5 0 eighty', expected bars such as "
            "'nids: 12.5 0 84.2; 40.1 56.2 140.3 | router: 310.6 0 84.5'");
  EXPECT_THAT(mistakes([](Record& r) { r.points[1].set("transfers", 7); }),
              HasSubstr("points[1].transfers: wrong value: found '7', expected bars"));
}

TEST(RecordCheck, FindsValuesThatAreNotNumbersOnce) {
  EXPECT_EQ(mistakes([](Record& r) { r.points[0].set("gbps", "fast"); }),
            "r.json: points[0].gbps: wrong value: found 'fast', expected a number");
  EXPECT_EQ(mistakes([](Record& r) { r.points[0].set("gbps_max", true); }),
            "r.json: points[0].gbps_max: wrong value: found 'true', expected a number");
  EXPECT_EQ(mistakes([](Record& r) { r.points[0].set("limit_gbps", "none"); }),
            "r.json: points[0].limit_gbps: wrong value: found 'none', expected a number");
}

TEST(RecordCheck, FindsFiguresWithoutAValueThatCanBeDrawn) {
  EXPECT_THAT(
      mistakes([](Record& r) { r.points[0].set("gbps", -3); }),
      HasSubstr("r.json: figure rate-c4: no value of gbps can be drawn: found -3, expected numbers of 0 or more"));
  EXPECT_EQ(mistakes([](Record& r) {
              r.points[0] = Point().set("chain", "C4").set("sweep", "latency").set("load", 10);
              r.points[0].set("percentile", 50).set("latency_us", 0);
            }),
            "r.json: figure latency-at-10: no value of latency_us can be drawn: found 0, expected numbers above 0, for "
            "a logarithmic axis");
}

TEST(RecordCheck, FindsCostsThatAreNotPositive) {
  EXPECT_EQ(mistakes([](Record& r) { r.limits.set("core_watts", -6.3); }),
            "r.json: limits.core_watts: wrong value: found '-6.3', expected a number above 0");
  EXPECT_EQ(mistakes([](Record& r) { r.points[0].set("dollars", 0); }),
            "r.json: points[0].dollars: wrong value: found '0', expected a number above 0");
}

TEST(RecordCheck, FindsPointsThatNoFigureShows) {
  EXPECT_EQ(
      mistakes([](Record& r) { r.points = {Point().set("part", "return").set("kept_gbytes_s", 3)}; }),
      "r.json: no point belongs to a figure: found part=return kept_gbytes_s=3, expected points of the experiment "
      "chain");
}

}  // namespace
}  // namespace penstock::experiments
