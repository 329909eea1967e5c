// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/code/reach.h"

#include <gtest/gtest.h>

#include "nf/filter/bpf/interpreter_core.h"
#include "nf/filter/code/random_programs_for_test.h"

namespace penstock::filter {
namespace {

using testing::compiled;
using testing::verified;

std::uint32_t reach_of(const std::string& expression) { return reach(compiled(expression).instructions()); }

TEST(Reach, IsTheEndOfTheLastAbsoluteLoad) {
  EXPECT_EQ(reach_of("ip"), 14U);
  EXPECT_EQ(reach_of("ip host 10.0.0.1"), 34U);
  EXPECT_EQ(reach_of("ether[100:4] = 7"), 104U);
  EXPECT_EQ(reach_of("len > 7"), 0U);
}

TEST(Reach, BoundsLoadsAfterHeadersByTheLongestHeader) {
  EXPECT_EQ(reach_of("ip and tcp dst port 80"), 14U + 60 + 4);
  EXPECT_EQ(reach_of("tcp[((tcp[12] & 0xf0) >> 2):4] = 1"), 14U + 60 + 60 + 4);
}

TEST(Reach, HasNoBoundWhereTheIndexHasNone) {
  EXPECT_EQ(reach(verified({{kLoadXLength, 0, 0, 0}, {kLoadByteInd, 0, 0, 0}, {kReturnA, 0, 0, 0}}).instructions()),
            kUnbounded);
  EXPECT_EQ(reach(verified({{kLoadByteAbs, 0, 0, 3},
                            {kSubtractK, 0, 0, 1},
                            {kCopyAToX, 0, 0, 0},
                            {kLoadByteInd, 0, 0, 0},
                            {kReturnA, 0, 0, 0}})
                      .instructions()),
            kUnbounded);
}

TEST(Reach, BytesBeyondItDoNotChangeTheResult) {
  testing::RandomPrograms draw(9);
  std::size_t compared = 0;
  std::size_t bounded = 0;
  for (int i = 0; i < 3000; ++i) {
    const Program program = draw.program(20);
    const std::uint32_t bound = reach(program.instructions());
    if (bound == kUnbounded) continue;
    ++bounded;
    for (int round = 0; round < 5; ++round) {
      auto packet = draw.packet(100);
      const auto length = static_cast<std::uint32_t>(packet.size());
      const std::uint32_t before = interpret(program.instructions().data(), {packet.data(), length, length});
      for (std::size_t at = bound; at < packet.size(); ++at) {
        packet[at] = static_cast<std::uint8_t>(draw.below(256));
        ++compared;
      }
      ASSERT_EQ(interpret(program.instructions().data(), {packet.data(), length, length}), before);
    }
  }
  EXPECT_GT(bounded, 500U);
  EXPECT_GT(compared, 1000U);
}

}  // namespace
}  // namespace penstock::filter
