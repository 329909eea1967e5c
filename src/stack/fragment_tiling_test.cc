// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/fragment_tiling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace penstock::stack {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Tiling = std::vector<std::uint16_t>;

std::set<Tiling> found_by(FragmentTilings& tilings, const std::vector<FragmentPiece>& pieces, std::size_t through) {
  EXPECT_TRUE(tilings.find(pieces, through));
  std::set<Tiling> found;
  for (std::size_t before = 0; before < tilings.before(); ++before) {
    for (std::size_t after = 0; after < tilings.after(); ++after) {
      const auto tiling = tilings.tiling(before, after);
      EXPECT_TRUE(found.emplace(tiling.begin(), tiling.end()).second);
      std::uint64_t sum = 0;
      for (const std::uint16_t piece : tiling) sum += pieces[piece].sum;
      EXPECT_EQ(tilings.sum(before, after) + pieces[through].sum, sum);
      EXPECT_EQ(tilings.length(after), pieces[tiling.back()].end);
    }
  }
  return found;
}

/// By trying all.
void extend(const std::vector<FragmentPiece>& pieces, std::size_t through, Tiling& so_far, std::set<Tiling>& found) {
  const std::uint32_t at = so_far.empty() ? 0 : pieces[so_far.back()].end;
  if (!so_far.empty() && pieces[so_far.back()].last) {
    if (std::find(so_far.begin(), so_far.end(), through) != so_far.end()) found.insert(so_far);
    return;
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].begin != at) continue;
    so_far.push_back(static_cast<std::uint16_t>(i));
    extend(pieces, through, so_far, found);
    so_far.pop_back();
  }
}

TEST(FragmentTilings, LaysPiecesEndToEnd) {
  FragmentTilings tilings;
  const std::vector<FragmentPiece> pieces{{0, 16, 1}, {16, 32, 2}, {32, 40, 4, true}, {0, 16, 8}, {8, 32, 16}};
  EXPECT_THAT(found_by(tilings, pieces, 1), ElementsAre(Tiling{0, 1, 2}, Tiling{3, 1, 2}));
  EXPECT_THAT(found_by(tilings, pieces, 3), ElementsAre(Tiling{3, 1, 2}));
  EXPECT_THAT(found_by(tilings, pieces, 4), IsEmpty()) << "nothing ends where it begins";
}

TEST(FragmentTilings, FindsWhatTryingAllFinds) {
  std::mt19937 random(1);
  FragmentTilings tilings;
  std::size_t all = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<FragmentPiece> pieces(1 + random() % 10);
    for (FragmentPiece& piece : pieces) {
      piece.begin = static_cast<std::uint32_t>(random() % 4);
      piece.end = piece.begin + 1 + static_cast<std::uint32_t>(random() % 3);
      piece.sum = static_cast<std::uint32_t>(random() % 1000);
      piece.last = random() % 4 == 0;
    }
    const std::size_t through = random() % pieces.size();
    std::set<Tiling> expected;
    Tiling so_far;
    extend(pieces, through, so_far, expected);
    ASSERT_EQ(found_by(tilings, pieces, through), expected);
    all += expected.size();
  }
  EXPECT_GT(all, 500U);
}

TEST(FragmentTilings, GivesUpWhereThereAreTooManyWays) {
  FragmentTilings tilings;
  std::vector<FragmentPiece> pieces;
  for (std::uint32_t at = 0; at < 30; ++at) {
    pieces.push_back({at, at + 1, 0});
    pieces.push_back({at, at + 1, 1});
  }
  pieces.push_back({30, 31, 0, true});
  EXPECT_FALSE(tilings.find(pieces, pieces.size() - 1)) << "2^30";
  EXPECT_FALSE(tilings.find(std::vector<FragmentPiece>(FragmentTilings::kMostPieces + 1, {0, 1, 0}), 0));
}

std::set<Tiling> covering(FragmentTilings& tilings, const std::vector<FragmentPiece>& pieces, std::size_t through) {
  tilings.find(pieces, through);
  tilings.cover(pieces);
  std::set<Tiling> found;
  unsigned given = 0;
  for (;;) {
    const auto tiling = tilings.next_covering(pieces);
    if (tiling.empty()) break;
    found.emplace(tiling.begin(), tiling.end());
    ++given;
  }
  EXPECT_LE(given, FragmentTilings::kMostCovering);
  return found;
}

//   place   0    1    2    3   …   29   30
//           A0   A1   A2   A3      A29  last
//           B0   B1   B2   B3      B29        2^30 ways: six neighbours come in all of their 64 combinations
TEST(FragmentTilings, CoversAllCombinationsOfNeighboursWhereThereAreTooManyWays) {
  FragmentTilings tilings;
  std::vector<FragmentPiece> pieces;
  for (std::uint32_t at = 0; at < 30; ++at) {
    pieces.push_back({at, at + 1, 0});
    pieces.push_back({at, at + 1, 1});
  }
  pieces.push_back({30, 31, 0, true});
  const std::set<Tiling> found = covering(tilings, pieces, pieces.size() - 1);
  EXPECT_EQ(found.size(), 64U);
  for (std::size_t first = 0; first + 6 <= 30; ++first) {
    std::set<Tiling> combinations;
    for (const Tiling& tiling : found) {
      const auto begin = tiling.begin() + static_cast<std::ptrdiff_t>(first);
      combinations.emplace(begin, begin + 6);
    }
    EXPECT_EQ(combinations.size(), 64U) << first;
  }
  for (const Tiling& tiling : covering(tilings, pieces, 31)) EXPECT_EQ(tiling[15], 31U) << "through this one";
}

TEST(FragmentTilings, CoversWithTilingsThatTryingAllFinds) {
  std::mt19937 random(2);
  FragmentTilings tilings;
  std::size_t all = 0, whole = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<FragmentPiece> pieces(1 + random() % 12);
    for (FragmentPiece& piece : pieces) {
      piece.begin = static_cast<std::uint32_t>(random() % 5);
      piece.end = piece.begin + 1 + static_cast<std::uint32_t>(random() % 3);
      piece.last = random() % 4 == 0;
    }
    const std::size_t through = random() % pieces.size();
    std::set<Tiling> expected;
    Tiling so_far;
    extend(pieces, through, so_far, expected);
    const std::set<Tiling> found = covering(tilings, pieces, through);
    ASSERT_EQ(found.empty(), expected.empty());
    ASSERT_TRUE(std::includes(expected.begin(), expected.end(), found.begin(), found.end()));
    all += expected.empty() ? 0 : 1;
    whole += !expected.empty() && found == expected ? 1 : 0;
  }
  EXPECT_GT(all, 500U);
  EXPECT_GT(whole, all * 9 / 10) << "nearly always all that there are";
}

TEST(FragmentTilings, TakesAsManyPiecesAsThereMayBe) {
  FragmentTilings tilings;
  std::vector<FragmentPiece> pieces;
  for (std::uint32_t at = 0; at < FragmentTilings::kMostPieces; ++at) pieces.push_back({at, at + 1, 1});
  pieces.back().last = true;
  EXPECT_EQ(found_by(tilings, pieces, 500).size(), 1U);
}

}  // namespace
}  // namespace penstock::stack
