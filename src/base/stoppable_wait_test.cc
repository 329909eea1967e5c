// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/stoppable_wait.h"

#include <gtest/gtest.h>

#include <thread>

namespace penstock {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

TEST(StoppableWait, LastsForTheTime) {
  const std::stop_source source;
  const auto begun = Clock::now();
  EXPECT_TRUE(wait_unless_stopped(source.get_token(), 20ms));
  EXPECT_GE(Clock::now() - begun, 20ms);
}

TEST(StoppableWait, EndsWhenTheThreadIsToStop) {
  bool goes_on = true;
  {
    const std::jthread thread([&](const std::stop_token& stop) { goes_on = wait_unless_stopped(stop, 1h); });
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_FALSE(goes_on);
}

TEST(StoppableWait, DoesNotBeginIfTheThreadIsToStop) {
  std::stop_source source;
  source.request_stop();
  EXPECT_FALSE(wait_unless_stopped(source.get_token(), 1h));
}

}  // namespace
}  // namespace penstock
