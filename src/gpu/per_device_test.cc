// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "gpu/per_device.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace penstock::gpu {
namespace {

TEST(PerDevice, MakesOneForEachDeviceAndKeepsIt) {
  PerDevice<int> tables;
  int made = 0;
  const auto make = [&] { return std::make_unique<int>(++made); };
  int& first = tables.of(0, make);
  EXPECT_EQ(tables.of(3, make), 2);
  EXPECT_EQ(&tables.of(0, make), &first);
  EXPECT_EQ(made, 2);
  std::vector<int> all;
  tables.for_each([&](int table) { all.push_back(table); });
  EXPECT_EQ(all, (std::vector{1, 2}));
  EXPECT_EQ(*tables.find_if([](int table) { return table > 1; }), 2);
  EXPECT_EQ(tables.find_if([](int table) { return table > 2; }), nullptr);
  tables.clear();
  EXPECT_EQ(tables.of(3, make), 3);
}

TEST(PerDevice, TriesAgainIfMakingFailed) {
  PerDevice<int> tables;
  const auto fail = []() -> std::unique_ptr<int> { throw std::runtime_error("no memory"); };
  EXPECT_THROW(tables.of(1, fail), std::runtime_error);
  int seen = 0;
  tables.for_each([&](int) { ++seen; });
  EXPECT_EQ(seen, 0);
  EXPECT_EQ(tables.of(1, [] { return std::make_unique<int>(7); }), 7);
}

}  // namespace
}  // namespace penstock::gpu
