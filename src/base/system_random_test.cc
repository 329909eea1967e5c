// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/system_random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <vector>

namespace penstock {
namespace {

TEST(SystemRandom, FillsAllBytes) {
  // More than the system gives in one call.
  std::vector<std::byte> bytes(std::size_t{40} << 20);
  ASSERT_TRUE(fill_with_random(bytes));
  for (std::size_t at = 0; at < bytes.size(); at += 64) {
    const std::span<const std::byte> part = std::span(bytes).subspan(at, 64);
    ASSERT_FALSE(std::ranges::all_of(part, [](std::byte byte) { return byte == std::byte{0}; })) << at;
  }
  EXPECT_TRUE(fill_with_random({}));
}

TEST(SystemRandom, ValuesDiffer) {
  std::set<std::array<std::uint8_t, 16>> values;
  for (int i = 0; i < 100; ++i) values.insert(random_value<std::array<std::uint8_t, 16>>().value());
  EXPECT_EQ(values.size(), 100U);
}

}  // namespace
}  // namespace penstock
