// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "gpu/collecting.h"

#include <gtest/gtest.h>

namespace penstock::gpu {
namespace {

/// The number of batches until the next try.
std::uint32_t pause_of(Collecting& collecting) {
  std::uint32_t batches = 0;
  while (!collecting.try_next()) ++batches;
  return batches;
}

TEST(Collecting, ContinuesAfterARefusal) {
  Collecting collecting;
  ASSERT_TRUE(collecting.try_next());
  collecting.refused();
  EXPECT_EQ(pause_of(collecting), Collecting::kFirstPause);
  collecting.launched();
  EXPECT_TRUE(collecting.try_next());
  EXPECT_TRUE(collecting.try_next());
}

TEST(Collecting, TriesLessOftenWithEachRefusal) {
  Collecting collecting;
  for (std::uint32_t expected = Collecting::kFirstPause; expected < Collecting::kLongestPause; expected *= 2) {
    collecting.refused();
    EXPECT_EQ(pause_of(collecting), expected);
  }
  for (int i = 0; i < 3; ++i) {
    collecting.refused();
    EXPECT_EQ(pause_of(collecting), Collecting::kLongestPause) << "and never stops";
  }
  collecting.launched();
  collecting.refused();
  EXPECT_EQ(pause_of(collecting), Collecting::kFirstPause) << "a graph that was launched counts for a fresh start";
}

}  // namespace
}  // namespace penstock::gpu
