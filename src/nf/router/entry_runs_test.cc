// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/entry_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "nf/router/expanded_for_test.h"
#include "nf/router/route_entry.h"

namespace penstock::router {
namespace {

using ::testing::ElementsAre;
using Entries = std::vector<std::uint32_t>;

TEST(EntryRuns, HaveAValueAndAnEndForEachRun) {
  const EntryRuns runs = runs_of(Entries{7, 7, 7, 7, 9, 8, 8, 8}, 3);
  EXPECT_THAT(runs.values, ElementsAre(7, 9, 8, kNoRouteEntry));
  EXPECT_THAT(runs.ends, ElementsAre(4, 5, 8, 11));
  EXPECT_EQ(runs.spans().size(), 11U);
}

TEST(EntryRuns, AreTheEntriesIfTheseDoNotRepeat) {
  const Entries all_differ{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(runs_of(all_differ, 0).values, all_differ);
  EXPECT_TRUE(runs_of(all_differ, 0).spans().are_entries());
  EXPECT_THAT(runs_of(Entries{1, 2}, 1).values, ElementsAre(1, 2, kNoRouteEntry));
  EXPECT_TRUE(runs_of({}, 0).values.empty());
  EXPECT_EQ(runs_of({}, 0).spans().size(), 0U);
}

TEST(EntryRuns, AreNeverLargerThanTheEntries) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    Entries entries;
    const std::size_t size = random() % 300;
    while (entries.size() < size) {
      const auto value = static_cast<std::uint32_t>(random() % 3);
      entries.resize(entries.size() + 1 + random() % (1 + static_cast<unsigned>(round) % 70), value);
    }
    const std::size_t padding = random() % 4;
    const EntryRuns runs = runs_of(entries, padding);
    EXPECT_TRUE(runs.spans().are_whole());
    EXPECT_LE(runs.values.size() + runs.ends.size(), entries.size() + padding);
    entries.resize(entries.size() + padding, kNoRouteEntry);
    EXPECT_EQ(expanded(runs.spans()), entries);
  }
}

TEST(EntryRuns, AreNotWholeIfOneHasNoEntryOrNoEnd) {
  const Entries two{1, 2};
  const auto are_whole = [&](const Entries& ends) { return RunSpans{two, ends}.are_whole(); };
  EXPECT_TRUE(are_whole({1, 2}));
  EXPECT_TRUE(are_whole({}));
  EXPECT_FALSE(are_whole({0, 2}));
  EXPECT_FALSE(are_whole({2, 2}));
  EXPECT_FALSE(are_whole({2, 1}));
  EXPECT_FALSE(are_whole({2}));
  EXPECT_FALSE(are_whole({1, 2, 3}));
}

}  // namespace
}  // namespace penstock::router
