// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "packet/packet_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "packet/batch.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

TEST(PacketMemory, RefusesMemoryThatFramesCannotBeReadFromInWords) {
  alignas(kFrameAlignment) std::array<std::uint8_t, 64> bytes{};
  PacketMemory memory;
  EXPECT_THAT(to_string(memory.add(std::span(bytes).subspan(1, 32)).error()), HasSubstr("not aligned"));
  EXPECT_THAT(to_string(memory.add(std::span(bytes).first(40)).error()), HasSubstr("not aligned"));
  EXPECT_THAT(to_string(memory.add({}).error()), HasSubstr("0 bytes, expected 1 to 4294967296 bytes"));
  EXPECT_THAT(to_string(memory.add({bytes.data(), PacketMemory::kMostBytes + 16}).error()), HasSubstr("wrong size"));
  EXPECT_EQ(memory.regions(), 1U);
}

TEST(PacketMemory, HasALimitedNumberOfRegions) {
  alignas(kFrameAlignment) std::array<std::uint8_t, 64> bytes{};
  PacketMemory memory;
  for (std::size_t i = 1; i < PacketMemory::kMostRegions; ++i) EXPECT_EQ(memory.add(bytes).value(), i);
  EXPECT_THAT(to_string(memory.add(bytes).error()), HasSubstr("too many regions"));
}

TEST(PacketMemory, LetsDevicesUseItsRegionsUntilItIsReleased) {
  alignas(kFrameAlignment) std::array<std::uint8_t, 64> bytes{};
  std::vector<std::span<std::uint8_t>> registered;
  int in_use = 0;
  PacketMemory memory([&](std::span<std::uint8_t> region) -> Result<std::shared_ptr<void>> {
    if (registered.size() == 2) return failure(Error{{}, "cannot pin", "", ""});
    registered.push_back(region);
    ++in_use;
    return std::shared_ptr<void>(&in_use, [](int* uses) { --*uses; });
  });
  const PacketMemory::Region first = memory.add(std::span(bytes).first(32)).value();
  const PacketMemory::Region second = memory.add(std::span(bytes).last(32)).value();
  EXPECT_THAT(to_string(memory.add(bytes).error()), HasSubstr("cannot pin"));
  EXPECT_EQ(memory.regions(), 3U) << "the one that was refused is not there";
  EXPECT_EQ(memory.base(first), bytes.data());
  EXPECT_EQ(memory.base(second), bytes.data() + 32);
  EXPECT_EQ(in_use, 2);
  memory.release();
  EXPECT_EQ(in_use, 0);
}

}  // namespace
}  // namespace penstock
