// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/rest.h"

#include <gtest/gtest.h>

namespace penstock::port {
namespace {

bool is_woken(Rest& rest) {
  std::vector<pollfd> polled;
  static_cast<void>(rest.add_wake_ups(polled));
  return ::poll(polled.data(), polled.size(), 0) > 0;
}

TEST(Rest, BeginsWhenTheWorkerIsDone) {
  Rest rest;
  rest.note(true);
  EXPECT_FALSE(rest.rests()) << "nobody has asked";
  rest.ask();
  EXPECT_TRUE(rest.asked());
  rest.note(false);
  EXPECT_FALSE(rest.rests());
  rest.note(true);
  EXPECT_TRUE(rest.rests());
  rest.end();
  EXPECT_FALSE(rest.asked());
  rest.ask();
  EXPECT_FALSE(rest.rests()) << "that was the last time";
}

TEST(Rest, WakesTheWorkerAtBothEnds) {
  Rest rest;
  std::vector<pollfd> polled;
  EXPECT_TRUE(rest.add_wake_ups(polled));
  ASSERT_EQ(polled.size(), 1);
  EXPECT_EQ(::poll(polled.data(), 1, 0), 0);
  rest.ask();
  EXPECT_EQ(::poll(polled.data(), 1, 0), 1) << "it sleeps already";
  EXPECT_FALSE(rest.add_wake_ups(polled)) << "it has not noted that it rests";
  rest.note(true);
  EXPECT_FALSE(is_woken(rest)) << "it sleeps while it rests";
  rest.end();
  EXPECT_EQ(::poll(polled.data(), 1, 0), 1);
  EXPECT_FALSE(is_woken(rest)) << "once is enough";
}

}  // namespace
}  // namespace penstock::port
