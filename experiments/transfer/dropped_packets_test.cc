// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>

#include "experiments/transfer/return_schemes.h"

namespace penstock::experiments {
namespace {

TEST(DroppedPackets, HaveTheRequestedNumber) {
  for (const char* spread : {"uniform", "random", "cluster"}) {
    for (const unsigned percent : {0U, 10U, 40U, 90U}) {
      const auto dropped = dropped_packets(200, percent, spread);
      EXPECT_EQ(std::ranges::count(dropped, true), 2 * percent) << spread;
    }
  }
}

TEST(DroppedPackets, AreDistributedAsRequested) {
  const auto uniform = dropped_packets(100, 25, "uniform");
  for (std::size_t i = 0; i < 100; i += 4) EXPECT_EQ(std::count(uniform.begin() + i, uniform.begin() + i + 4, true), 1);
  const auto cluster = dropped_packets(100, 25, "cluster");
  EXPECT_TRUE(std::is_sorted(cluster.begin(), cluster.end(), std::greater<>{}));
  const auto random = dropped_packets(100, 25, "random");
  EXPECT_NE(random, uniform);
  EXPECT_NE(random, cluster);
}

}  // namespace
}  // namespace penstock::experiments
