// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/memory_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "base/testing/rounds.h"

namespace penstock::stack {
namespace {

TEST(MemoryPool, GivesPiecesThatDoNotOverlapAndTakesAllBack) {
  MemoryPool pool((1U << 20) + 5 * 256 + 17);
  std::mt19937 random(1);
  struct Piece {
    std::byte* at;
    unsigned order;
    std::byte mark;
  };
  std::vector<Piece> pieces;
  for (std::uint32_t step = 0; step < penstock::testing::rounds(200'000); ++step) {
    if (random() % 100 < 55) {
      const auto order = MemoryPool::kSmallestOrder + static_cast<unsigned>(random() % 8);
      std::byte* const at = pool.take(order);
      if (at == nullptr) continue;
      const auto mark = static_cast<std::byte>(random());
      std::memset(at, static_cast<int>(mark), std::size_t{1} << order);
      pieces.push_back({at, order, mark});
    } else if (!pieces.empty()) {
      const std::size_t which = random() % pieces.size();
      const Piece piece = pieces[which];
      const std::size_t size = std::size_t{1} << piece.order;
      ASSERT_TRUE(std::all_of(piece.at, piece.at + size, [&](std::byte b) { return b == piece.mark; }));
      pool.give(piece.at, piece.order);
      pieces[which] = pieces.back();
      pieces.pop_back();
    }
  }
  for (const Piece& piece : pieces) pool.give(piece.at, piece.order);
  EXPECT_EQ(pool.used_bytes(), 0U);
  EXPECT_NE(pool.take(20), nullptr) << "pieces were not made one again";
  EXPECT_NE(pool.take(10), nullptr);
  EXPECT_NE(pool.take(8), nullptr);
  EXPECT_EQ(pool.take(8), nullptr) << "more than the region has";
}

TEST(MemoryPool, RefusesWhatIsLargerThanItself) {
  MemoryPool pool(4096);
  EXPECT_EQ(pool.take(13), nullptr);
  EXPECT_EQ(pool.take(60), nullptr);
  EXPECT_NE(pool.take(12), nullptr);
  EXPECT_EQ(pool.take(8), nullptr);
}

}  // namespace
}  // namespace penstock::stack
