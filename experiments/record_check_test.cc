// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/record_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <set>
#include <string>

#include "experiments/catalog.h"
#include "experiments/kept_records_for_test.h"

namespace penstock::experiments {
namespace {

using ::testing::HasSubstr;

/// A record of the experiment chain: a rate by size, and a timeline.
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

TEST(RecordCheck, FindsGarbledTransfers) {
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
  EXPECT_EQ(mistakes([](Record& r) {
              r.points[0] = Point().set("chain", "C4").set("sweep", "latency").set("load", 10);
              r.points[0].set("percentile", 50).set("latency_us", 0);
            }),
            "r.json: figure latency-at-10: no value of latency_us can be drawn: found 0, expected numbers above 0, for "
            "a logarithmic axis");
}

TEST(RecordCheck, FindsCostsThatAreNotPositive) {
  EXPECT_EQ(mistakes([](Record& r) { r.limits.set("core_watts", -6.3); }),
            "r.json: limits.core_watts: wrong value: found '-6.3', expected a number above 0, at most 1e15");
  EXPECT_EQ(mistakes([](Record& r) { r.points[0].set("dollars", 0); }),
            "r.json: points[0].dollars: wrong value: found '0', expected a number above 0, at most 1e15");
}

TEST(RecordCheck, FindsLimitsThatAreNotRates) {
  EXPECT_EQ(mistakes([](Record& r) { r.limits.set("pcie_to_device", -54.9); }),
            "r.json: limits.pcie_to_device: wrong value: found '-54.9', expected a number above 0, at most 1e15");
  EXPECT_EQ(mistakes([](Record& r) { r.limits.set("pcie_to_host", 0); }),
            "r.json: limits.pcie_to_host: wrong value: found '0', expected a number above 0, at most 1e15");
  EXPECT_THAT(mistakes([](Record& r) { r.limits.set("memory_copy_one_core", 1e300); }), HasSubstr("found '1e+300'"));
  EXPECT_THAT(mistakes([](Record& r) { r.limits.set("memory_copy_all_cores", "NaN"); }), HasSubstr("found 'NaN'"));
  EXPECT_EQ(mistakes([](Record& r) { r.points[0].set("limit_gbps", -164); }),
            "r.json: points[0].limit_gbps: wrong value: found '-164', expected a number above 0, at most 1e15");
}

TEST(RecordCheck, FindsValuesOutOfRangeWhetherAFigureShowsThemOrNot) {
  EXPECT_EQ(mistakes([](Record& r) { r.points[0].set("gbps", -3); }),
            "r.json: points[0].gbps: wrong value: found '-3', expected a number from 0 to 1e15");
  EXPECT_EQ(mistakes([](Record& r) { r.points[0].set("latency_p50", 1e300); }),
            "r.json: points[0].latency_p50: wrong value: found '1e+300', expected a number from 0 to 1e15");
  EXPECT_EQ(
      mistakes([](Record& r) { r.points[0].set("packets_in_batch", "nan"); }),
      "r.json: points[0].packets_in_batch: wrong value: found 'nan', expected text, true, false, or a number from 0 to "
      "1e15");
  EXPECT_EQ(mistakes([](Record& r) { r.points[0].set("size", "63"); }),
            "r.json: points[0].size: wrong value: found '63', expected a frame size from 64 to 9000 bytes, or imix");
}

TEST(RecordCheck, FindsAValueThatIsTextInOnePointAndANumberInAnother) {
  EXPECT_EQ(mistakes([](Record& r) {
              r.points[0].set("busy_cores", 3);
              r.points[1].set("busy_cores", "many");
            }),
            "r.json: points[1].busy_cores: wrong value: found 'many', expected a number, as in points[0]");
}

TEST(RecordCheck, FindsASpreadThatExcludesTheMedian) {
  EXPECT_EQ(mistakes([](Record& r) { r.points[0].set("gbps_min", 118); }),
            "r.json: points[0].gbps_min: wrong value: found '118', expected at most gbps (117.6)");
  EXPECT_EQ(mistakes([](Record& r) { r.points[0].set("gbps_max", 117); }),
            "r.json: points[0].gbps_max: wrong value: found '117', expected at least gbps (117.6)");
}

TEST(RecordCheck, FindsRepeatsThatAreNotOfTheirValue) {
  EXPECT_EQ(mistakes([](Record& r) { r.points[0].set("gbps_repeats", Repeats{117, 118}); }), "");
  EXPECT_EQ(
      mistakes([](Record& r) {
        r.points[0].set("gbps_repeats", Repeats{118, 119});
      }),
      "r.json: points[0].gbps_repeats: wrong value: found '118, 119', expected values on both sides of gbps (117.6)");
  EXPECT_EQ(
      mistakes([](Record& r) { r.points[0].set("gbps_repeats", 117.6); }),
      "r.json: points[0].gbps_repeats: wrong value: found '117.6', expected a list of at least two, each a number "
      "from 0 to 1e15");
  EXPECT_EQ(mistakes([](Record& r) {
              r.points[0].set("gbps", Repeats{117, 118});
            }),
            "r.json: points[0].gbps: wrong value: found '117, 118', expected a number");
  EXPECT_EQ(mistakes([](Record& r) { r.points[0].set("gbps_low", 118); }),
            "r.json: points[0].gbps_low: wrong value: found '118', expected at most gbps (117.6)");
}

TEST(RecordCheck, FindsPointsAtTheSamePlaceOnce) {
  EXPECT_EQ(mistakes([](Record& r) {
              Point again = r.points[0];
              r.points.push_back(again.set("gbps", 40));
            }),
            "r.json: points[2]: the same place in figure rate as points[0]: found 'chain=C4 size=64', "
            "expected one point for each");
  EXPECT_THAT(mistakes([](Record& r) { r.points.push_back(r.points[1]); }),
              HasSubstr("points[2]: the same place in figure timeline as points[1]: found 'mode=shared'"));
}

TEST(RecordCheck, FindsBarsOutOfRange) {
  for (const char* const bars : {"nids: 1e300 0 84.2", "nids: -5 0 84.2", "nids: 5 0 1e300"}) {
    EXPECT_THAT(mistakes([&](Record& r) { r.points[1].set("transfers", bars); }),
                HasSubstr("points[1].transfers: wrong value"))
        << bars;
  }
}

TEST(RecordCheck, FindsNothingInTheKeptRecordsAndRendersAll) {
  for_each_kept_record(PENSTOCK_RECORDS,
                       [](const std::string& path, const Experiment& experiment, const Record& record) {
                         EXPECT_EQ(to_string(check_record(record, experiment, path)), "");
                         for (const Figure& figure : experiment.figures()) {
                           if (!has_points(figure, record)) continue;
                           EXPECT_THAT(table(figure, record, Style::terminal), HasSubstr(figure.title));
                         }
                       });
}

TEST(RecordCheck, FindsRemarksOnUnknownFigures) {
  EXPECT_EQ(mistakes([](Record& r) { r.remarks = {{"rate-c4", "a stall"}}; }), "");
  EXPECT_EQ(mistakes([](Record& r) {
              r.remarks = {{"rates", "a stall"}};
            }),
            "r.json: remarks[0].figure: unknown figure: found 'rates', expected one of the experiment chain");
}

/// Nobody could build these programs again, so nobody could repeat the measurement.
TEST(RecordCheck, FindsNoKeptRecordOfAProgramWithUncommittedChanges) {
  std::set<std::string> found;
  for_each_kept_record(PENSTOCK_RECORDS, [&](const std::string& path, const Experiment&, const Record& record) {
    if (had_uncommitted_changes(record)) found.insert(std::filesystem::path(path).filename().string());
  });
  EXPECT_THAT(found, ::testing::IsEmpty());
}

TEST(RecordCheck, FindsPointsThatNoFigureShows) {
  EXPECT_EQ(
      mistakes([](Record& r) { r.points = {Point().set("part", "return").set("kept_gbytes_s", 3)}; }),
      "r.json: no point belongs to a figure: found part=return kept_gbytes_s=3, expected points of the experiment "
      "chain");
}

}  // namespace
}  // namespace penstock::experiments
