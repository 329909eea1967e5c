// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "experiments/workload.h"

namespace penstock::experiments {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST(Programs, SayWhyTheyFail) {
  const Workplace folder;
  const auto failed = run_program({"sh", "-c", "echo no such thing; exit 3"}, folder.path("out"));
  ASSERT_FALSE(failed);
  EXPECT_THAT(to_string(failed.error()), HasSubstr("failed: found no such thing"));
  EXPECT_FALSE(run_program({"penstock-no-such-program"}, folder.path("out")));
  EXPECT_FALSE(is_installed("penstock-no-such-program"));
  auto endless = Program::start({"sleep", "1000"}, folder.path("out"));
  ASSERT_TRUE(endless);
  EXPECT_FALSE(endless->ended_within(milliseconds{20}));
}

}  // namespace
}  // namespace penstock::experiments
