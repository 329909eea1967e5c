// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/match/scan_tables.h"

#include <gtest/gtest.h>

#include "nf/nids/match/aho_corasick_core.h"
#include "nf/nids/match/literals_for_test.h"

namespace penstock::nids {
namespace {

using testing::literal;

std::vector<Literal> drawn(std::size_t count, std::size_t bytes) {
  testing::Draw draw(1);
  std::vector<Literal> literals;
  while (literals.size() < count) literals.push_back({draw.bytes(bytes), false});
  return literals;
}

bool is_automaton(const Result<ScanTables>& tables) {
  return std::holds_alternative<AhoCorasickTables>(tables->engine);
}

TEST(ScanTables, AreAnAutomatonOfFewShortLiteralsAndAFilterOfMany) {
  EXPECT_TRUE(is_automaton(build_scan_tables(drawn(5, 8))));
  EXPECT_FALSE(is_automaton(build_scan_tables(drawn(5'000, 8))));
  EXPECT_FALSE(is_automaton(build_scan_tables(drawn(5, 10))));
}

// After a reload there may be no literals any more, but the chain's plan still has the stage.
TEST(ScanTables, CanBeOfNoLiterals) {
  const auto tables = build_scan_tables({});
  ASSERT_TRUE(is_automaton(tables));
  const auto view = std::get<AhoCorasickTables>(tables->engine).view<std::uint16_t>();
  EXPECT_EQ(view.first_accepting, 1U);
  for (unsigned byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(ac_step(view.class_of, view.next, view.classes, 0, static_cast<std::uint8_t>(byte)), 0U);
  }
}

TEST(ScanTables, UseTheRequestedEngineOrFail) {
  EXPECT_FALSE(is_automaton(build_scan_tables(drawn(5, 8), ScanEngine::hashed_filter)));
  EXPECT_TRUE(is_automaton(build_scan_tables(drawn(200, 8), ScanEngine::aho_corasick_strips)));
  EXPECT_FALSE(build_scan_tables(drawn(5, 10), ScanEngine::aho_corasick_strips));
  EXPECT_FALSE(build_scan_tables(drawn(20'000, 8), ScanEngine::aho_corasick_strips))
      << "more states than 16 bits tell apart";
}

TEST(ScanTables, TakeAnyLiteralsForAThreadPerPacket) {
  for (const std::size_t count : {0U, 5U, 1'000U}) {
    const auto tables = build_scan_tables(drawn(count, 255), ScanEngine::aho_corasick_packets);
    ASSERT_TRUE(tables);
    EXPECT_EQ(std::get<PacketAutomaton>(tables->engine).tables.is_narrow(), count < 1'000) << count;
  }
}

TEST(ScanTables, OfAFilterHaveTheRequestedBitsOrAsManyAsTheLiteralsNeed) {
  const auto bits = [](const Result<ScanTables>& tables) {
    return std::get<HashedFilterTables>(tables->engine).quad_bits.size() * 4;
  };
  constexpr auto kFilter = ScanEngine::hashed_filter;
  EXPECT_EQ(bits(build_scan_tables(drawn(10, 8), kFilter)), 4U << 10);
  EXPECT_EQ(bits(build_scan_tables(drawn(200, 8), kFilter)), 16U << 10);
  EXPECT_EQ(bits(build_scan_tables(drawn(40'000, 8), kFilter)), 64U << 10);
  EXPECT_EQ(bits(build_scan_tables(drawn(10, 8), kFilter, {13})), 32U << 10);
}

}  // namespace
}  // namespace penstock::nids
