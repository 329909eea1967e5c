// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace penstock::experiments {
namespace {

using ::testing::HasSubstr;

Record sample() {
  Record record;
  record.version = "0.1.0";
  record.commit = "abc";
  record.experiment = "offload";
  record.command = "penstock bench offload --only 'a b=\"c\"'";
  record.date = "2026-11-21T13:40:00Z";
  record.complete = true;
  record.machine = {"A CPU", 16, 137438953472, {{0, "A GPU"}, {1, "Another"}}, "580.65.06"};
  record.limits.set("pcie_both_each_way", 50.25);
  record.left_out = {"what, and why"};
  record.errors = {"a mistake"};
  record.remarks = {{"router-batch", "a \"remark\""}};
  record.points.push_back(Point().set("engine", "dir24").set("batch", 65536).set("mpps", 0.1).set("checked", true));
  record.points.back().set("mpps_repeats", Repeats{0.1, 3, 1.0 / 3, -2.5e-300});
  record.points.push_back(Point());
  return record;
}

Record with_points(std::vector<Point> points) {
  Record record = sample();
  record.points = std::move(points);
  return record;
}

Errors errors_of(std::string_view text) {
  const auto record = parse_record(text, "r.json");
  EXPECT_FALSE(record.has_value());
  return record ? Errors() : record.error();
}

TEST(Record, SurvivesARoundTripThroughJson) {
  for (const Record& record : {sample(), with_points({}), Record{}}) {
    const auto back = parse_record(to_json(record), "r.json");
    ASSERT_TRUE(back) << to_string(back.error());
    EXPECT_EQ(*back, record) << to_json(record);
  }
}

TEST(Record, KeepsEveryNumberExactly) {
  for (const double number : {0.1, 1.0 / 3, -2.5e-300, 1e300, 9007199254740991.0, -1.0, 18446744073709551616.0}) {
    const auto back = parse_record(to_json(with_points({Point().set("x", number)})), "r.json");
    ASSERT_TRUE(back) << to_string(back.error());
    EXPECT_EQ(back->points[0].number("x"), number);
  }
  EXPECT_THAT(to_json(with_points({Point().set("x", 65536)})), HasSubstr("\"x\":65536}")) << "whole, as it was meant";
}

TEST(Record, WritesTextsThatAreNotUtf8) {
  EXPECT_TRUE(parse_record(to_json(with_points({Point().set("file", "\xff\x1b\"\n")})), "r.json"));
}

TEST(Record, ReportsWhereJsonIsMalformed) {
  const Errors errors = errors_of("{\n  \"points\": [1,\n}\n");
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].place.file, "r.json");
  EXPECT_EQ(errors[0].place.line, 3U);
  EXPECT_EQ(errors[0].place.column, 1U);
  EXPECT_EQ(errors[0].message, "not JSON");
  EXPECT_THAT(to_string(errors_of("")), HasSubstr("r.json:1:1: not JSON: found the end of the file"));
  EXPECT_THAT(to_string(errors_of("{\"points\": 1e999}")), HasSubstr("out of range"));
  EXPECT_THAT(to_string(errors_of("{\"a\": \"\xff\"}")), HasSubstr("not JSON"));
  EXPECT_THAT(to_string(errors_of(std::string(100'000, '['))), HasSubstr("not JSON")) << "and no stack overflow";
}

TEST(Record, ReportsWrongRemarks) {
  std::string text = to_json(sample());
  const std::string from = "\"figure\": \"router-batch\"";
  text.replace(text.find(from), from.size(), "\"figure\": 7");
  EXPECT_EQ(to_string(errors_of(text)), "r.json: remarks[0].figure: wrong value: found '7', expected a string");
}

TEST(Record, KnowsProgramsWithUncommittedChanges) {
  Record record = sample();
  EXPECT_FALSE(had_uncommitted_changes(record));
  record.commit += "-dirty";
  EXPECT_TRUE(had_uncommitted_changes(record));
}

TEST(Record, HasASizeLimit) {
  const auto refused = parse_record(std::string(kMostRecordBytes + 1, '['), "record.json");
  ASSERT_FALSE(refused);
  EXPECT_EQ(to_string(refused.error()),
            "record.json: too large for a record: found more than 16.0 MiB, expected at most 16.0 MiB");
}

TEST(Record, ReportsEverythingThatIsMissingOrOfAnotherType) {
  const std::string all = to_string(errors_of("{}"));
  for (const char* name :
       {"penstock", "experiment", "command", "date", "complete", "machine", "limits", "left_out", "errors", "points"}) {
    EXPECT_THAT(all, HasSubstr(std::string("r.json: ") + name + " is missing")) << all;
  }
  EXPECT_THAT(to_string(errors_of("[]")), HasSubstr("the record: wrong value: found a list, expected an object"));

  const auto broken = [](const std::string& from, const std::string& to) {
    std::string text = to_json(sample());
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return to_string(errors_of(text.replace(at, from.size(), to)));
  };
  EXPECT_EQ(broken("\"cores\": 16", "\"cores\": -1"),
            "r.json: machine.cores: wrong value: found '-1', expected a whole number in its range");
  EXPECT_EQ(broken("\"cores\": 16", "\"cores\": 1.5"),
            "r.json: machine.cores: wrong value: found '1.5', expected a whole number");
  EXPECT_EQ(broken("\"complete\": true", "\"complete\": \"yes\""),
            "r.json: complete: wrong value: found '\"yes\"', expected true or false");
  EXPECT_EQ(broken("\"batch\":65536", "\"batch\":null"),
            "r.json: points[0].batch: wrong value: found 'null', expected a number, a string, true, false or a list of "
            "numbers");
  EXPECT_EQ(broken("\"batch\":65536", "\"batch\":{}"),
            "r.json: points[0].batch: wrong value: found an object, expected a number, a string, true, false or a list "
            "of numbers");
  EXPECT_EQ(broken("\"index\": 1", "\"index\": \"1\""),
            "r.json: machine.gpus[1].index: wrong value: found '\"1\"', expected a whole number");
  EXPECT_EQ(broken("\"a mistake\"", "7"), "r.json: errors[0]: wrong value: found '7', expected a string");
}

TEST(Point, IgnoresNumbersThatJsonCannotRepresent) {
  const Point point = Point().set("nan", std::numeric_limits<double>::quiet_NaN()).set("inf", 1.0 / 0.0).set("one", 1);
  EXPECT_EQ(describe(point), "one=1");
  EXPECT_TRUE(Point().set("repeats", Repeats{1, std::numeric_limits<double>::quiet_NaN()}).empty());
}

TEST(Record, RefusesListsOfAnythingButNumbers) {
  for (const char* const list : {"[1, \"2\"]", "[[1]]", "[null]", "[true]"}) {
    std::string text = to_json(sample());
    const std::string from = "\"batch\":65536";
    text.replace(text.find(from), from.size(), std::string("\"batch\":") + list);
    EXPECT_EQ(
        to_string(errors_of(text)),
        "r.json: points[0].batch: wrong value: found a list, expected a number, a string, true, false or a list of "
        "numbers");
  }
}

TEST(Point, ReplacesAValueInItsPlace) {
  Point point;
  point.set("a", 1).set("b", true).set("c", "text").set("a", 0.5);
  EXPECT_EQ(describe(point), "a=0.5 b=true c=text");
  EXPECT_EQ(point.number("b"), std::nullopt);
  EXPECT_EQ(point.find("d"), nullptr);
}

TEST(Point, SatisfiesConditionsOnTheTextOfItsValues) {
  const Point point = Point().set("engine", "dir24").set("batch", 65536).set("quick", false);
  EXPECT_TRUE(satisfies(point, {}));
  EXPECT_TRUE(satisfies(point, {{"batch", {"256", "65536"}}, {"quick", {"false"}}}));
  EXPECT_FALSE(satisfies(point, {{"batch", {"65536"}}, {"engine", {"trie4"}}}));
  EXPECT_FALSE(satisfies(point, {{"cores", {""}}})) << "what it lacks is no empty text";
}

}  // namespace
}  // namespace penstock::experiments
