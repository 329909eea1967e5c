// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/value_range.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock::experiments {
namespace {

struct Case {
  const char* key;
  std::vector<Value> right, wrong;
};

TEST(ValueRange, SeparatesValuesByTheirNames) {
  using namespace std::string_literals;
  const std::vector<Case> cases{
      {"size", {64.0, 9000.0, "64"s, "1518"s, "imix"s}, {0.0, -64.0, 63.0, 9001.0, 64.5, "0"s, "-64"s, "big"s, ""s}},
      {"workers", {1.0, 16.0}, {0.0, -1.0, 1.5, 1e300, "1"s, true}},
      {"dropped_percent", {0.0, 100.0}, {-1.0, 101.0, "10"s}},
      {"percentile", {1.0, 99.9}, {0.0, 100.0, -1.0}},
      {"batch_bytes", {"8MiB"s}, {"0"s, "much"s, 8.0}},
      {"limit_mpps", {0.1, 1e15}, {0.0, -1.0, 1e16, "nan"s}},
      {"less_up_shared", {-20.0, 50.0}, {-1e16, 1e16}},
      {"gbps_repeats", {Repeats{3, 0}}, {Repeats{}, Repeats{3}, Repeats{3, -1}, Repeats{3, 1e16}, 3.0, "3"s, true}},
      {"lost_percent_repeats", {Repeats{0, 100}}, {Repeats{0, 101}}},
      {"gbps", {3.0}, {Repeats{3, 4}}},
      {"anything", {0.0, 1e15, "text"s, false, "1/2"s}, {-1e-9, 1e16, "nan"s, "NaN"s, "inf"s, "-inf"s}},
  };
  for (const Case& c : cases) {
    for (const Value& value : c.right) EXPECT_FALSE(expected_of_point(c.key, value)) << c.key << ' ' << to_text(value);
    for (const Value& value : c.wrong) EXPECT_TRUE(expected_of_point(c.key, value)) << c.key << ' ' << to_text(value);
  }
}

TEST(ValueRange, HasLimitsAboveZero) {
  EXPECT_FALSE(expected_of_limits(54.9));
  for (const Value& value :
       {Value(0.0), Value(-1.0), Value(1e300), Value(true), Value(std::string("NaN")), Value(Repeats{1, 2})}) {
    EXPECT_EQ(expected_of_limits(value), "a number above 0, at most 1e15") << to_text(value);
  }
}

}  // namespace
}  // namespace penstock::experiments
