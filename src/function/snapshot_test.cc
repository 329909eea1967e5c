// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "function/snapshot.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/testing/rounds.h"

namespace penstock::function {
namespace {

/// All cells always have the same value, except while they are being updated in place.
struct Table {
  std::vector<int> cells = std::vector<int>(64, 0);
  [[nodiscard]] bool whole() const {
    for (const int cell : cells) {
      if (cell != cells.front()) return false;
    }
    return true;
  }
};

TEST(Snapshot, AReaderKeepsItsTableUntilItsBatchBoundary) {
  Snapshot<int> snapshot(std::make_unique<const int>(1));
  Snapshot<int>::Reader reader(snapshot);
  std::thread publisher([&] { EXPECT_EQ(*snapshot.publish(std::make_unique<const int>(2)), 1); });
  while (snapshot.newest() != 2) std::this_thread::yield();
  EXPECT_EQ(reader.table(), 1);
  reader.refresh();
  EXPECT_EQ(reader.table(), 2);
  publisher.join();
}

TEST(Snapshot, NoReaderEverSeesATableThatIsBeingChanged) {
  Snapshot<Table> snapshot(std::make_unique<const Table>());
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 3; ++r) {
    readers.emplace_back([&] {
      Snapshot<Table>::Reader reader(snapshot);
      while (!stop) {
        reader.refresh();
        if (!reader.table().whole()) ++torn;
        std::this_thread::yield();  // if there are fewer CPUs than threads, let the others run
      }
    });
  }
  auto shadow = std::make_unique<Table>();
  constexpr int kVersions = penstock::testing::rounds(2000);
  for (int version = 1; version <= kVersions; ++version) {
    for (int& cell : shadow->cells) cell = version;
    std::unique_ptr<const Table> before = snapshot.publish(std::move(shadow));
    // Nothing reads it any more, so it may be changed in place.
    shadow.reset(const_cast<Table*>(before.release()));
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(snapshot.newest().cells.front(), kVersions);
}

}  // namespace
}  // namespace penstock::function
