// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/slow_notice.h"

#include <gtest/gtest.h>

#include <future>

namespace penstock {
namespace {

TEST(SlowNotice, TellsOnceWhenAStepTakesLong) {
  std::promise<void> told;
  int count = 0;
  {
    const SlowNotice notice(std::chrono::milliseconds{1}, [&] {
      ++count;
      told.set_value();
    });
    told.get_future().wait();
  }
  EXPECT_EQ(count, 1);
}

TEST(SlowNotice, SaysNothingOfAStepThatIsDone) {
  bool told = false;
  {
    const SlowNotice notice(std::chrono::hours{1}, [&] { told = true; });
  }
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace penstock
