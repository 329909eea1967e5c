// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/decimal.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace penstock {
namespace {

TEST(Decimal, ReadsNumbersUpToTheLargest) {
  EXPECT_EQ(parse_decimal<std::uint8_t>("0"), 0);
  EXPECT_EQ(parse_decimal<std::uint8_t>("255"), 255);
  EXPECT_EQ(parse_decimal<std::uint8_t>("256"), std::nullopt);
  EXPECT_EQ(parse_decimal<std::uint16_t>("65535"), 65535);
  EXPECT_EQ(parse_decimal<unsigned>("32", 32), 32U);
  EXPECT_EQ(parse_decimal<unsigned>("33", 32), std::nullopt);
}

TEST(Decimal, TakesNothingElse) {
  for (const char* const text : {"", "-1", "+1", " 1", "1 ", "0x1", "1.0", "1e2", "one"})
    EXPECT_EQ(parse_decimal<std::uint16_t>(text), std::nullopt) << text;
}

}  // namespace
}  // namespace penstock
