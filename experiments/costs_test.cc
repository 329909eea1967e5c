// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/costs.h"

#include <gtest/gtest.h>

namespace penstock::experiments {
namespace {

TEST(Costs, AreDollarsAndWatts) {
  const auto cost = parse_cost("134.67:6.7");
  ASSERT_TRUE(cost);
  EXPECT_DOUBLE_EQ(cost->dollars, 134.67);
  EXPECT_DOUBLE_EQ(cost->watts, 6.7);
  for (const char* wrong :
       {"", ":", "1200", "1200:", ":250", "0:250", "-1:250", "1200:x", "1200:250:1", "nan:1", "1e3:1"}) {
    EXPECT_FALSE(parse_cost(wrong)) << wrong;
  }
}

TEST(Costs, IncludeThePointsCoresAndGpus) {
  Record record;
  record.machine.gpus = {{0, "a GPU"}, {1, "another"}};
  record.points = {
      Point().set("processor", "cpu").set("workers", 10).set("gbps", 20),
      Point().set("processor", "gpu").set("workers", 2).set("gpus", 1).set("gbps", 60),
      Point().set("processor", "gpu").set("workers", 2).set("gbps", 60),
      Point().set("processor", "gpu").set("workers", 2).set("mpps", 1),
  };
  const auto all = record.points;
  add_costs(record, {});
  EXPECT_EQ(record.points, all) << "nothing is known";
  add_costs(record, {.core = Cost{100, 10}, .gpu = std::nullopt});
  EXPECT_EQ(record.points[1], all[1]) << "the GPU's price is not known";
  add_costs(record, {.core = Cost{100, 10}, .gpu = Cost{1000, 180}});
  EXPECT_EQ(record.limits.number("core_dollars"), 100);
  EXPECT_EQ(record.limits.number("gpu_watts"), 180);
  EXPECT_EQ(record.points[0].number("dollars"), 1000);
  EXPECT_EQ(record.points[0].number("mbps_per_dollar"), 20);
  EXPECT_EQ(record.points[0].number("mbps_per_watt"), 200);
  EXPECT_EQ(record.points[1].number("dollars"), 1200);
  EXPECT_EQ(record.points[1].number("watts"), 200);
  EXPECT_EQ(record.points[1].number("mbps_per_dollar"), 50);
  EXPECT_EQ(record.points[2].number("dollars"), 2200) << "all GPUs of the run";
  EXPECT_EQ(record.points[3], all[3]) << "no rate";
}

}  // namespace
}  // namespace penstock::experiments
