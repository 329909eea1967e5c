// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/units.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

using std::chrono::nanoseconds;

TEST(Units, ReadsSizes) {
  EXPECT_EQ(parse_size("4096"), 4096U);
  EXPECT_EQ(parse_size("4MiB"), 4U << 20);
  EXPECT_EQ(parse_size("1.5KiB"), 1536U);
  EXPECT_EQ(parse_size("2MB"), 2'000'000U);
  for (const char* text : {"", "-1", "4XB", "1.5B", "MiB", "1e3", "nan"}) EXPECT_FALSE(parse_size(text)) << text;
}

TEST(Units, ReadsUnitsCaseInsensitively) {
  EXPECT_EQ(parse_size("1mb"), 1'000'000U);
  EXPECT_EQ(parse_size("1MB"), 1'000'000U);
  EXPECT_EQ(parse_size("4mib"), 4U << 20);
  EXPECT_EQ(parse_size("4MIB"), 4U << 20);
  EXPECT_EQ(parse_size("64k"), 64U << 10);
  EXPECT_EQ(parse_size("64b"), 64U);
  EXPECT_EQ(parse_duration("500US"), nanoseconds{500'000});
  EXPECT_EQ(parse_duration("2S"), nanoseconds{2'000'000'000});
  for (const char* text : {"10gbps", "10Gbps", "10GBPS", "10 gbps"}) {
    const auto rate = parse_rate(text);
    ASSERT_TRUE(rate) << text;
    EXPECT_EQ(rate->unit, Rate::Unit::bits_per_second) << text;
    EXPECT_DOUBLE_EQ(rate->value, 1e10) << text;
  }
  EXPECT_DOUBLE_EQ(parse_rate("2MPPS")->value, 2e6);
  EXPECT_EQ(parse_rate("2mpps")->unit, Rate::Unit::packets_per_second);
}

TEST(Units, RefusesUnitsWhoseCaseSwapsBitsAndBytes) {
  for (const char* text : {"1Mb", "1Gb", "1Kb"}) EXPECT_FALSE(parse_size(text)) << text;
  for (const char* text : {"10GBps", "10MBps", "1kBps"}) EXPECT_FALSE(parse_rate(text)) << text;
}

TEST(Units, ReadsDurationsWithTheirUnit) {
  EXPECT_EQ(parse_duration("500us"), nanoseconds{500'000});
  EXPECT_EQ(parse_duration("1ms"), nanoseconds{1'000'000});
  EXPECT_EQ(parse_duration("2.5s"), nanoseconds{2'500'000'000});
  EXPECT_EQ(parse_duration("0"), nanoseconds{0});
  for (const char* text : {"5", "", "ms", "-1ms", "1 day"}) EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(Units, DistinguishesBitRatesFromPacketRates) {
  EXPECT_EQ(parse_rate("10Gbps")->unit, Rate::Unit::bits_per_second);
  EXPECT_DOUBLE_EQ(parse_rate("10Gbps")->value, 1e10);
  EXPECT_EQ(parse_rate("2Mpps")->unit, Rate::Unit::packets_per_second);
  EXPECT_FALSE(parse_rate("10"));
}

TEST(Units, ReadsIntegersThatAreTheWholeText) {
  EXPECT_EQ(parse_integer("0x1f"), 31U);
  EXPECT_EQ(parse_integer("18446744073709551615"), ~0ULL);
  for (const char* text : {"", "0x", "1.0", "18446744073709551616", "-1", "1 "})
    EXPECT_FALSE(parse_integer(text)) << text;
}

TEST(Units, FormatsForHumans) {
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(0, "rule"), "0 rules");
  EXPECT_EQ(format_count(1, "rule"), "1 rule");
  EXPECT_EQ(format_count(1234, "rule"), "1,234 rules");
  EXPECT_EQ(format_size(4U << 20), "4.0 MiB");
  EXPECT_EQ(format_duration(nanoseconds{1'250'000}), "1.25 ms");
  EXPECT_EQ(format_si(12'345'678), "12.3 M");
}

}  // namespace
}  // namespace penstock
