// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "ring/lent_runs.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <vector>

namespace penstock::ring {
namespace {

constexpr std::size_t kBatch = std::size_t{4} << 20;

/// The runs of 2,000 frames of equal length and distance.
std::vector<LentRun> runs_of(std::uint32_t first, std::uint32_t stride, std::uint32_t length) {
  LentRuns runs(kBatch);
  runs.begin();
  for (std::uint32_t i = 0; i < 2000; ++i) runs.add(1, first + i * stride, length);
  const auto found = runs.end();
  return {found.begin(), found.end()};
}

TEST(LentRuns, CopiesFramesWithSmallGapsTogetherWithTheGaps) {
  LentRuns runs(kBatch);
  runs.begin();
  for (std::uint32_t i = 0; i < 2000; ++i) runs.add(3, 4096 + i * 1600, 1513 + i % 2);
  const auto found = runs.end();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].source, 3U);
  EXPECT_EQ(found[0].first, 4096U);
  EXPECT_EQ(found[0].rows, 1U);
  EXPECT_EQ(found[0].width, 1999 * 1600 + 1520U);
  EXPECT_EQ(found[0].place(7, 4096 + 7 * 1600), 7 * 1600U);
}

TEST(LentRuns, CopiesFramesThatFollowEachOtherDirectly) {
  const auto found = runs_of(5, 99, 99);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rows, 1U);
  EXPECT_EQ(found[0].width, aligned_frame(5 + 2000 * 99));
}

TEST(LentRuns, LeavesLargeGapsBetweenFramesOut) {
  const auto found = runs_of(66, 2048, 1514);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].first, 64U);
  EXPECT_EQ(found[0].rows, 2000U);
  EXPECT_EQ(found[0].width, 1520U);
  EXPECT_EQ(found[0].stride, 2048U);
  EXPECT_EQ(found[0].place(7, 66 + 7 * 2048), 7 * 1520U + 2);
}

TEST(LentRuns, CopiesRowsWithoutGapsAsOne) {
  const auto found = runs_of(32, 1520, 1514);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].first, 32U);
  EXPECT_EQ(found[0].rows, 1U);
  EXPECT_EQ(found[0].width, 2000 * 1520U);
  EXPECT_EQ(found[0].place(7, 32 + 7 * 1520), 7 * 1520U);
}

TEST(LentRuns, BeginsAnotherOneAfterTheEndOfTheLargestRegion) {
  for (const std::uint32_t next : {0x80000000U, 0U, 512U}) {
    LentRuns runs(kBatch);
    runs.begin();
    runs.add(1, 0xfffff800, 1024);
    runs.add(1, 0xfffffc00, 1024);
    runs.add(1, next, 1024);
    const auto found = runs.end();
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].packets, 2U);
    EXPECT_EQ(found[1].first, next);
  }
}

TEST(LentRuns, FindsNoneInShortFramesThatAreFarApart) { EXPECT_TRUE(runs_of(0, 2048, 60).empty()); }

TEST(LentRuns, BeginsAnotherOneWhereFramesGoBackOrToOtherMemory) {
  LentRuns runs(kBatch);
  runs.begin();
  for (std::uint32_t i = 0; i < 100; ++i) runs.add(1, 1'000'000 + i * 1536, 1514);
  for (std::uint32_t i = 0; i < 100; ++i) runs.add(1, i * 1536, 1514);
  for (std::uint32_t i = 0; i < 100; ++i) runs.add(2, 200'000 + i * 1536, 1514);
  const auto found = runs.end();
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].rows, 100U);
  EXPECT_EQ(found[1].first, 0U);
  EXPECT_EQ(found[2].source, 2U);
  for (const LentRun& run : found) EXPECT_EQ(run.packets, 100U);
}

/// What the copies bring is what the frames are, and it fits.
RC_GTEST_PROP(LentRuns, BringsEachFrameToItsPlace, ()) {
  std::vector<std::uint8_t> memory(1 << 18);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::uint8_t>(i * 2654435761U >> 13);
  struct Frame {
    std::uint32_t offset, length;
  };
  std::vector<Frame> frames;
  std::size_t bytes = 0;
  std::uint32_t at = 0;
  std::uint32_t stride = 0;
  for (int n = *rc::gen::inRange(1, 200); n > 0; --n) {
    const int jump = *rc::gen::inRange(0, 30);
    if (jump == 0) at = static_cast<std::uint32_t>(*rc::gen::inRange(0, 1 << 16));
    if (jump == 1) stride = static_cast<std::uint32_t>(*rc::gen::inRange(0, 2500));
    const auto length = static_cast<std::uint32_t>(*rc::gen::inRange(0, 2000));
    if (at + length > memory.size()) at = 0;
    frames.push_back({at, length});
    bytes += aligned_frame(length) + kFrameAlignment;
    at += std::max(stride, length + static_cast<std::uint32_t>(*rc::gen::inRange(0, 40)));
  }
  LentRuns runs(kBatch);
  runs.begin();
  for (const Frame& frame : frames) runs.add(0, frame.offset, frame.length);
  const auto found = runs.end();
  std::vector<std::uint8_t> sent;
  std::size_t i = 0;
  for (const LentRun& run : found) {
    const std::size_t base = sent.size();
    for (std::uint32_t row = 0; row < run.rows; ++row) {
      const std::size_t from = run.first + std::size_t{row} * run.stride;
      RC_ASSERT(from + run.width <= memory.size());
      sent.insert(sent.end(), memory.begin() + static_cast<std::ptrdiff_t>(from),
                  memory.begin() + static_cast<std::ptrdiff_t>(from + run.width));
    }
    for (std::uint32_t n = 0; n < run.packets; ++n, ++i) {
      const std::size_t place = base + run.place(n, frames[i].offset);
      RC_ASSERT(place % kFrameAlignment == frames[i].offset % kFrameAlignment);
      RC_ASSERT(place + frames[i].length <= sent.size());
      if (frames[i].length == 0) continue;
      RC_ASSERT(std::memcmp(sent.data() + place, memory.data() + frames[i].offset, frames[i].length) == 0);
    }
  }
  RC_ASSERT(found.empty() || i == frames.size());
  RC_ASSERT(sent.size() <= LentRuns::with_gaps(bytes));
}

}  // namespace
}  // namespace penstock::ring
