// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "classify/rfc_build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "base/testing/rounds.h"
#include "classify/random_rules_for_test.h"
#include "classify/rfc_core.h"
#include "classify/rfc_table_writer.h"

namespace penstock::classify {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Deterministic numbers of 32 bits.
class Numbers {
 public:
  explicit Numbers(std::uint32_t seed) : random_(seed) {}
  std::uint32_t operator()() { return static_cast<std::uint32_t>(random_()); }

 private:
  std::mt19937 random_;
};

TEST(RfcTable, HasTheElementsThatWereWrittenCompressedOrNot) {
  Numbers random(1);
  for (const std::uint32_t highest : {1U, 0xffffU, 0x10000U, 0xffffffffU}) {
    for (const std::uint32_t run : {1U, 2U, 31U, 32U, 33U, 500U}) {  // elements that are equal to their predecessors
      std::vector<std::uint32_t> written;
      RfcTableWriter writer;
      while (written.size() < 2000) {
        // The highest element comes first. Equal ones are only adjacent in runs, or if there are only two.
        const auto n_th = static_cast<std::uint32_t>(written.size());
        const std::uint32_t element = highest > 1 ? highest - n_th : random() % 2;
        for (std::uint32_t n = 1 + random() % run; n > 0; --n) {
          written.push_back(element);
          writer.add(element);
        }
      }
      std::vector<std::uint64_t> memory(3);  // of an earlier table
      const RfcTable table = writer.append_to(memory, 1, 0);
      EXPECT_EQ(table.wide, highest > 0xffff);
      EXPECT_EQ(table.blocks == kRfcPlain, highest > 1 && run == 1) << run << " of up to " << highest;
      EXPECT_LT((memory.size() - 3) * sizeof(std::uint64_t), writer.memory_bytes() + sizeof(std::uint64_t));
      const RfcMemory view{reinterpret_cast<const std::byte*>(memory.data())};
      for (std::uint32_t i = 0; i < written.size(); ++i) ASSERT_EQ(element(view, table, i), written[i]) << i;
    }
  }
}

/// Rules from a few templates, with random addresses: /24 to any, any to /24 with a port, /16 to /16.
Ruleset templates(std::uint32_t count) {
  Numbers random(count);
  Ruleset rules;
  for (std::uint32_t i = 0; i < count; ++i) {
    rules.rules.push_back({i + 1, Target::drop, false, ""});
    const auto prefix = [&](Subject subject, std::uint32_t base, std::uint32_t bits) {
      const std::uint32_t low = (base + (random() & 0x00ffffff)) >> (32 - bits) << (32 - bits);
      return ipv4_condition(subject, {low}, {low | 0xffffffffU >> bits}, false);
    };
    std::vector<Condition> conditions;
    if (i % 3 != 1) conditions.push_back(prefix(Subject::source4, 0x8c000000, i % 3 == 0 ? 24 : 16));
    if (i % 3 != 0) conditions.push_back(prefix(Subject::destination4, 0x7b000000, i % 3 == 1 ? 24 : 16));
    if (i % 3 == 1) conditions.push_back(port_condition(rules, Subject::destination_port, {{8888, 8888}}, false));
    Entry entry;
    entry.family = NetworkLayer::ipv4;
    entry.rule = i;
    add_entry(rules, conditions, entry);
  }
  return rules;
}

TEST(RfcBuild, TakesLessMemoryThanTheAddressesHaveValues) {
  const auto tables = build_rfc(templates(1000));
  ASSERT_TRUE(tables);
  EXPECT_EQ(tables->memory_bytes(), tables->memory.size() * 8);
  EXPECT_LT(tables->memory_bytes(), std::size_t{4 * 65536 * 2}) << "plain tables for the values of four chunks";
}

TEST(RfcBuild, LeavesOutChunksAndDimensionsThatNoRuleTests) {
  const auto tables = build_rfc(templates(1));
  ASSERT_TRUE(tables);
  EXPECT_EQ(tables->ipv4.source.count, 2U);
  EXPECT_EQ(tables->ipv4.source.chunks[1].classes.shift, 8) << "a /24";
  EXPECT_EQ(tables->ipv4.destination.count, 0U);
  EXPECT_EQ(tables->ipv4.rest_count, 0);
  EXPECT_EQ(tables->ipv6.source.count, 0U) << "the rule is for IPv4";
  EXPECT_FALSE(tables->ipv4.has_first);
}

/// Enough that the limits below are reached, with few steps if a sanitizer makes each slow.
constexpr std::uint32_t kTooManyRules = penstock::testing::stride() == 1 ? 4096 : 1024;

TEST(RfcBuild, RefusesToGrowBeyondItsMemoryLimit) {
  Draw draw(7);
  const Ruleset rules = draw.rules(kTooManyRules);
  const std::string found = kTooManyRules == 4096 ? "4,096" : "1,024";
  for (const std::size_t limit : {std::size_t{0}, std::size_t{1} << 12, std::size_t{1} << 18, std::size_t{1} << 22}) {
    const auto tables = build_rfc(rules, {limit, std::uint64_t{1} << 30});
    ASSERT_FALSE(tables);
    const std::string error = to_string(tables.error());
    EXPECT_THAT(error, StartsWith("too many rules for RFC: found " + found + " rules: IPv4 "));
    EXPECT_THAT(error, HasSubstr(" needs more than "));
    EXPECT_THAT(error, EndsWith(", expected fewer rules, or `engine: bitvector`"));
  }
}

TEST(RfcBuild, RefusesToTakeTooLong) {
  Draw draw(7);
  const Ruleset rules = draw.rules(kTooManyRules);
  for (const std::uint64_t steps : {std::uint64_t{0}, std::uint64_t{1} << 10, std::uint64_t{1} << 20}) {
    const auto tables = build_rfc(rules, {std::size_t{1} << 30, steps});
    ASSERT_FALSE(tables);
    EXPECT_THAT(to_string(tables.error()), HasSubstr(" takes too long to build"));
  }
}

TEST(RfcBuild, FindsTheSameEntriesWithAnyLimitsThatSuffice) {
  Draw draw(3);
  const Ruleset rules = draw.rules(40);
  const auto full = build_rfc(rules);
  ASSERT_TRUE(full);
  std::uint32_t fit = 0;
  for (std::size_t limit = std::size_t{1} << 10; limit < std::size_t{1} << 30; limit *= 2) {
    const auto tables = build_rfc(rules, {limit, std::uint64_t{1} << 30});
    if (!tables) continue;
    ++fit;
    EXPECT_LE(tables->memory_bytes(), limit);
    for (int i = 0; i < 200; ++i) {
      const Key key = draw.key();
      ASSERT_EQ(deciding_entry(tables->view(), key), deciding_entry(full->view(), key));
    }
  }
  EXPECT_GT(fit, 5U);
  EXPECT_LT(fit, 20U) << "the smallest limits are too small";
}

}  // namespace
}  // namespace penstock::classify
