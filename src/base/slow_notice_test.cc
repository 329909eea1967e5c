// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/slow_notice.h"

#include <gtest/gtest.h>

#include <future>

namespace penstock {
namespace {

TEST(SlowNotice, NotifiesOnceWhenAStepTakesLong) {
  std::promise<void> notified;
  int count = 0;
  {
    const SlowNotice notice(std::chrono::milliseconds{1}, [&] {
      ++count;
      notified.set_value();
    });
    notified.get_future().wait();
  }
  EXPECT_EQ(count, 1);
}

TEST(SlowNotice, IsSilentAboutAFinishedStep) {
  bool notified = false;
  {
    const SlowNotice notice(std::chrono::hours{1}, [&] { notified = true; });
  }
  EXPECT_FALSE(notified);
}

}  // namespace
}  // namespace penstock
