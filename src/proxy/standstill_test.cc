// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/standstill.h"

#include <gtest/gtest.h>

namespace penstock::proxy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Standstill, IsSeenWhenTheNumberStaysTheSame) {
  Standstill watch;
  Standstill::Clock::time_point now{seconds{1000}};
  watch.begin(now);
  for (int i = 0; i < 99; ++i) EXPECT_FALSE(watch.look(7, now += milliseconds{50})) << i;
  EXPECT_FALSE(watch.look(7, now += milliseconds{40}));
  for (int i = 0; i < 3; ++i) static_cast<void>(watch.look(7, now += milliseconds{50}));
  EXPECT_TRUE(watch.look(7, now));
  EXPECT_FALSE(watch.look(8, now += milliseconds{50})) << "it goes on";
}

TEST(Standstill, BeginsAnewWithEachChangeAndEachOrder) {
  Standstill watch;
  Standstill::Clock::time_point now{seconds{1000}};
  watch.begin(now);
  for (std::uint32_t round = 0; round < 10; ++round) {
    for (int i = 0; i < 80; ++i) EXPECT_FALSE(watch.look(round, now += milliseconds{60}));
  }
  for (int round = 0; round < 10; ++round) {
    watch.begin(now);
    for (int i = 0; i < 80; ++i) EXPECT_FALSE(watch.look(9, now += milliseconds{60}));
  }
}

TEST(Standstill, DoesNotCountTheTimeForWhichNobodyLooks) {
  Standstill watch;
  Standstill::Clock::time_point now{seconds{1000}};
  watch.begin(now);
  for (int i = 0; i < 40; ++i) EXPECT_FALSE(watch.look(1, now += seconds{60})) << "the machine was stopped";
}

}  // namespace
}  // namespace penstock::proxy
