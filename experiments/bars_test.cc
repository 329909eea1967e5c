// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/bars.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <vector>

namespace penstock::experiments {
namespace {

TEST(Bars, SurviveARoundTripThroughText) {
  const std::vector<BarRow> rows{
      {"nids", {{12.5, 0, 84.2}, {40.1, 56.2, 140.3}}}, {"firewall, nids#2", {}}, {"router", {{310.6, 84.5, 84.5}}}};
  EXPECT_EQ(bars_text(rows), "nids: 12.5 0 84.2; 40.1 56.2 140.3 | firewall, nids#2: | router: 310.6 84.5 84.5");
  EXPECT_EQ(parse_bars(bars_text(rows)), rows);
  EXPECT_EQ(bars_text({}), "");
  EXPECT_EQ(parse_bars(""), std::vector<BarRow>{});
}

TEST(Bars, AreNotReadFromOtherText) {
  for (const char* text :
       {"nids", "nids: 1 2", "nids: 1 0 3 4", "nids: a 0 1", "nids: 1 0 2;", "nids: 1 3 2", "nids: 1 -1 2",
        "nids: -1 0 2", "nids: 1 nan 2", "nids: inf 0 2", "nids: 1 0 inf", "a: 1 0 1 |"}) {
    EXPECT_FALSE(parse_bars(text)) << text;
  }
}

TEST(Bars, UseTheFirstFreeLane) {
  const std::vector<Bar> bars{{0, 0, 10}, {5, 0, 10}, {10, 0, 10}, {12, 0, 1}, {15, 0, 1}};
  EXPECT_EQ(lanes_of_bars(bars), (std::vector<std::size_t>{0, 1, 0, 2, 1}));
  EXPECT_TRUE(lanes_of_bars({}).empty());
}

TEST(Bars, NeverOverlap) {
  std::mt19937 random(3);  // NOLINT: the same bars each time
  for (int round = 0; round < 100; ++round) {
    std::vector<Bar> bars(static_cast<std::size_t>(random() % 30));
    for (Bar& bar : bars) bar = {static_cast<double>(random() % 100), 0, static_cast<double>(1 + random() % 40)};
    const std::vector<std::size_t> lanes = lanes_of_bars(bars);
    for (std::size_t i = 0; i < bars.size(); ++i) {
      std::size_t overlapping = 0;
      for (std::size_t j = 0; j < bars.size(); ++j) {
        const bool overlap =
            bars[i].begin < bars[j].begin + bars[j].length && bars[j].begin < bars[i].begin + bars[i].length;
        if (i != j && overlap) {
          EXPECT_NE(lanes[i], lanes[j]) << round;
        }
        overlapping += overlap ? 1 : 0;
      }
      EXPECT_LT(lanes[i], overlapping) << "no lane is left empty where it begins";
    }
  }
}

}  // namespace
}  // namespace penstock::experiments
