// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The router's tables change while a GPU forwards with them: each packet that leaves shows which version decided on it.

#include <gtest/gtest.h>

#include <string>

#include "gpu/swap_bed.h"

namespace penstock::on_gpu {
namespace {

using router::Fib4Engine;

class TableSwapOnTheGpu : public ::testing::TestWithParam<Way> {};

INSTANTIATE_TEST_SUITE_P(Ways, TableSwapOnTheGpu, ::testing::ValuesIn(kWays),
                         [](const auto& way) { return test_name(way.param); });

void expect_sound_swaps(Fib4Engine engine, std::uint32_t versions, const Way& way) {
  SwapBed bed(engine, Fault::none, 0);
  ASSERT_NO_FATAL_FAILURE(put_on_gpu(bed.chain.settings, way));
  ASSERT_NO_FATAL_FAILURE(bed.run(versions));
  bed.expect_sound();
  EXPECT_EQ(bed.steps_back, 0U) << "packets by an older version than those before them";
  expect_all_on_device(bed.report);
  EXPECT_EQ(bed.report["gpu"]["punted"], 0);
}

TEST_P(TableSwapOnTheGpu, LosesNoPacketAndShowsNoneHalfAChange) {
  ASSERT_NO_FATAL_FAILURE(expect_sound_swaps(Fib4Engine::kTrie4, 60, GetParam()));
}

TEST(LargeTableSwapOnTheGpu, LosesNoPacketAndShowsNoneHalfAChange) {
  ASSERT_NO_FATAL_FAILURE(expect_sound_swaps(Fib4Engine::kDir24, 30, kWays[2]));
}

}  // namespace
}  // namespace penstock::on_gpu
