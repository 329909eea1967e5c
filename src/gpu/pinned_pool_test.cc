// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "gpu/pinned_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

namespace penstock::gpu {
namespace {

struct Slabs {
  void* make(std::size_t bytes) {
    if (all.size() == most) throw std::runtime_error("no memory");
    all.push_back(
        std::unique_ptr<void, decltype(&std::free)>(std::aligned_alloc(PinnedPool::kAlignment, bytes), std::free));
    return all.back().get();
  }
  std::vector<std::unique_ptr<void, decltype(&std::free)>> all;
  std::size_t most = 100;
  PinnedPool pool{[this](std::size_t bytes) { return make(bytes); }};
};

TEST(PinnedPool, GivesBlocksThatDoNotOverlap) {
  Slabs slabs;
  struct Block {
    unsigned char* memory;
    std::size_t bytes;
  };
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < 600; ++i) {
    const std::size_t bytes = 1 + i * i * 37 % 70'000;
    blocks.push_back({static_cast<unsigned char*>(slabs.pool.take(bytes)), bytes});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().memory) % PinnedPool::kAlignment, 0U);
    std::memset(blocks.back().memory, static_cast<int>(i % 251), bytes);
    if (i % 3 == 0) {
      EXPECT_TRUE(slabs.pool.give(blocks[i / 2].memory));
      blocks[i / 2] = {static_cast<unsigned char*>(slabs.pool.take(blocks[i / 2].bytes)), blocks[i / 2].bytes};
      std::memset(blocks[i / 2].memory, static_cast<int>(i / 2 % 251), blocks[i / 2].bytes);
    }
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (std::size_t b = 0; b < blocks[i].bytes; ++b) ASSERT_EQ(blocks[i].memory[b], i % 251) << "block " << i;
  }
}

TEST(PinnedPool, NeedsNoSlabForBlocksThatWereGivenBack) {
  Slabs slabs;
  for (int round = 0; round < 100; ++round) {
    std::vector<void*> blocks;
    for (const std::size_t bytes : {100U, 5'000U, 200'000U, 250'000U, 256U << 10})
      blocks.push_back(slabs.pool.take(bytes));
    for (void* const block : blocks) EXPECT_TRUE(slabs.pool.give(block));
  }
  EXPECT_EQ(slabs.all.size(), 1U);
}

TEST(PinnedPool, CutsLargeBlocksFromItsReserve) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  Slabs slabs;
  EXPECT_EQ(slabs.pool.take_reserved(kMiB), nullptr) << "nothing is reserved";
  slabs.pool.reserve(40 * kMiB);
  auto* const large = static_cast<unsigned char*>(slabs.pool.take_reserved(9 * kMiB));  // a block of 16 MiB
  auto* const other = static_cast<unsigned char*>(slabs.pool.take_reserved(16 * kMiB));
  auto* const half = static_cast<unsigned char*>(slabs.pool.take_reserved(kMiB / 2 + 1));
  ASSERT_TRUE(large != nullptr && other != nullptr && half != nullptr);
  std::memset(large, 1, 9 * kMiB);
  std::memset(other, 2, 16 * kMiB);
  std::memset(half, 3, kMiB / 2 + 1);
  EXPECT_TRUE(large[9 * kMiB - 1] == 1 && other[0] == 2 && other[16 * kMiB - 1] == 2 && half[0] == 3);
  EXPECT_EQ(slabs.pool.take_reserved(16 * kMiB), nullptr) << "7 MiB are left";
  EXPECT_EQ(slabs.pool.take_reserved(16 * kMiB + 1), nullptr) << "too large for any reserve";
  EXPECT_TRUE(slabs.pool.give(large));
  EXPECT_EQ(slabs.pool.take_reserved(16 * kMiB), large);
  EXPECT_EQ(slabs.all.size(), 1U);
}

TEST(PinnedPool, RefusesMemoryThatIsNotItsOwn) {
  Slabs slabs;
  int other = 0;
  EXPECT_FALSE(slabs.pool.give(&other));
  void* const block = slabs.pool.take(1);
  EXPECT_TRUE(slabs.pool.give(block));
  EXPECT_FALSE(slabs.pool.give(block));
}

TEST(PinnedPool, GoesOnAfterASlabCouldNotBeMade) {
  Slabs slabs;
  slabs.most = 0;
  EXPECT_THROW(static_cast<void>(slabs.pool.take(1000)), std::runtime_error);
  slabs.most = 1;
  EXPECT_NE(slabs.pool.take(1000), nullptr);
}

}  // namespace
}  // namespace penstock::gpu
