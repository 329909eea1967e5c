// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/frame_numbers.h"

#include <gtest/gtest.h>

namespace penstock::stack {
namespace {

TEST(FrameNumbers, AreRightForFramesThatComeLate) {
  FrameNumbers numbers;
  PacketDescriptor packet;
  for (const std::uint64_t number : {0xffff'fff0ULL, 0x1'0000'0010ULL, 0xffff'fff8ULL, 0x1'0000'0011ULL}) {
    packet.number = static_cast<std::uint32_t>(number);
    if (number == 0xffff'fff0ULL) {  // in steps that are not too long
      for (const std::uint32_t step : {0x7000'0000U, 0xd000'0000U}) {
        packet.number = step;
        EXPECT_EQ(numbers.of(packet), step);
      }
      packet.number = static_cast<std::uint32_t>(number);
    }
    EXPECT_EQ(numbers.of(packet), number);
  }
}

TEST(FrameNumbers, BeginAnywhere) {
  for (const std::uint32_t first : {1U, 0x7fff'ffffU, 0x8000'0000U, 0x9000'0000U, 0xffff'ffffU}) {
    FrameNumbers numbers;
    PacketDescriptor packet;
    packet.number = first;
    EXPECT_EQ(numbers.of(packet), first);
    packet.number = first + 1;
    EXPECT_EQ(numbers.of(packet), std::uint64_t{first} + 1);
  }
}

TEST(FrameNumbers, CountOnPast32Bits) {
  FrameNumbers numbers;
  PacketDescriptor packet;
  const auto of = [&](std::uint64_t number, PortIndex port) {
    packet.number = static_cast<std::uint32_t>(number);
    packet.in_port = port;
    return numbers.of(packet);
  };
  for (const std::uint64_t number : {1ULL, 7ULL, 0x7000'0000ULL, 0xd000'0000ULL, 0x1'0000'0000ULL, 0x1'0000'0001ULL}) {
    EXPECT_EQ(of(number, 0), number);
    EXPECT_EQ(of(number / 2 + 1, 3), number / 2 + 1) << "each port has its own";
    EXPECT_EQ(of(0, 1), 0U) << "and some have none";
  }
}

}  // namespace
}  // namespace penstock::stack
