// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/leeway.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace penstock::proxy {
namespace {

constexpr double kMost = 32 << 20;

/// What a window shows, by how many bytes others may have on the device.
struct Model {
  std::function<std::optional<double>(double bytes)> late;
  std::function<bool(double bytes)> starves = [](double) { return false; };
};

/// Bytes, of which `Leeway::bytes` says that there is no limit.
double bytes_of(const Leeway& leeway) { return leeway.limits() ? leeway.bytes() : kMost; }

void run(Leeway& leeway, const Model& model, int windows) {
  for (int i = 0; i < windows; ++i) {
    const double bytes = bytes_of(leeway);
    leeway.adapt({model.late(bytes), model.starves(bytes)}, kMost);
  }
}
/// The bytes that it allows most often, once it has learnt.
double settled(Leeway& leeway, const Model& model) {
  run(leeway, model, 40);
  std::map<double, int> windows;
  for (int i = 0; i < 200; ++i) {
    run(leeway, model, 1);
    ++windows[bytes_of(leeway)];
  }
  return std::ranges::max_element(windows, {}, &std::pair<const double, int>::second)->first;
}

TEST(Leeway, LimitsNobodyIfNoBatchIsLate) {
  Leeway leeway;
  run(leeway, {[](double) { return 0.0; }}, 100);
  EXPECT_FALSE(leeway.limits());
}

TEST(Leeway, FindsTheMostThatLeavesNoBatchLate) {
  for (const double bears : {20e6, 8e6, 1e6, 200e3}) {
    Leeway leeway;
    const double found = settled(leeway, {[&](double bytes) { return bytes > bears ? 1.0 : 0.0; }});
    EXPECT_LE(found, bears);
    EXPECT_GT(found, bears / 1.5);
  }
}

TEST(Leeway, StarvesNobody) {
  constexpr double kStarving = 4e6;
  for (const double bears : {0.0, 1e6}) {
    Leeway leeway;
    const double found = settled(leeway, {[&](double bytes) { return bytes > bears ? bytes / kMost : 0.0; },
                                          [](double bytes) { return bytes < kStarving; }});
    EXPECT_GE(found, kStarving);
    EXPECT_LT(found, 1.5 * kStarving) << "as few as others bear";
  }
}

/// With few batches on the device, they wait for themselves.
TEST(Leeway, AllowsMoreWhereLessIsWorse) {
  Leeway leeway;
  EXPECT_EQ(settled(leeway, {[](double bytes) { return bytes < 30e6 ? 0.9 : 0.3; }}), kMost);
}

TEST(Leeway, TakesNothingFromOthersForWhatIsLateAnyway) {
  for (const double late : {0.01, 0.5, 1.0}) {
    Leeway leeway;
    EXPECT_EQ(settled(leeway, {[&](double) { return late; }}), kMost) << late;
  }
}

TEST(Leeway, FollowsTheDevice) {
  Leeway leeway;
  double bears = 1e6;
  const Model model{[&](double bytes) { return bytes > bears ? 1.0 : 0.0; }};
  for (const double next : {1e6, 16e6, 300e3, 64e6}) {
    bears = next;
    run(leeway, model, 400);
    EXPECT_LE(settled(leeway, model), bears) << bears;
    EXPECT_GT(settled(leeway, model), std::min(bears, kMost) / 1.5) << bears;
  }
}

/// As when a tenant begins.
TEST(Leeway, LimitsNobodyForLongBecauseBatchesWereLateOnce) {
  Leeway leeway;
  run(leeway, {[](double bytes) { return bytes > 3e6 ? 1.0 : 0.0; }}, 10);
  ASSERT_TRUE(leeway.limits());
  run(leeway, {[](double) { return 0.0; }}, 40);
  EXPECT_FALSE(leeway.limits());
}

TEST(Leeway, SeldomTriesWhatFailsAgainAndAgain) {
  Leeway leeway;
  const Model model{[](double bytes) { return bytes > 1e6 ? 1.0 : 0.0; }};
  run(leeway, model, 400);
  int failed = 0;
  for (int i = 0; i < 1000; ++i) {
    failed += bytes_of(leeway) > 1e6 ? 1 : 0;
    run(leeway, model, 1);
  }
  EXPECT_GT(failed, 0) << "the device may have changed";
  EXPECT_LE(failed, 10);
}

/// Nothing is ordered, but what was ordered before is not done.
TEST(Leeway, LeavesALevelThatStarvesOthersAlsoIfNoBatchEnds) {
  Leeway leeway;
  run(leeway, {[](double bytes) { return bytes > 1e6 ? 1.0 : 0.0; }}, 40);
  ASSERT_TRUE(leeway.limits());
  run(leeway, {[](double) { return std::nullopt; }, [](double bytes) { return bytes < kMost; }}, 20);
  EXPECT_FALSE(leeway.limits());
}

TEST(Leeway, LimitsNobodyWhileItPauses) {
  Leeway leeway;
  const Model model{[](double bytes) { return bytes > 1e6 ? 1.0 : 0.0; }};
  run(leeway, model, 40);
  const double before = leeway.bytes();
  leeway.pause();
  EXPECT_FALSE(leeway.limits());
  EXPECT_TRUE(leeway.tries()) << "a short window";
  run(leeway, model, 1);
  EXPECT_EQ(leeway.bytes(), before) << "what is late meanwhile does not count";
}

}  // namespace
}  // namespace penstock::proxy
