// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "ring/packet_ring.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <fstream>
#include <random>
#include <set>

namespace penstock::ring {
namespace {

constexpr std::uint8_t kFrame[60] = {1, 2, 3};

TEST(PacketRing, IsSizedAsInGaviss) {
  using namespace std::chrono_literals;
  EXPECT_EQ(ring_bytes(100e9 / 8, 10ms), 200'000'000U) << "the paper's example (section 4.1)";
}

TEST(PacketRing, ReturnsBatchesInTheOrderTheyWereClosed) {
  PacketRing ring({4096, 8, 3, 1 << 30, 1, {}});
  for (std::uint64_t i = 0; i < 3; ++i) {
    Batch* batch = ring.filling();
    ASSERT_NE(batch, nullptr);
    ASSERT_TRUE(batch->append(kFrame, {.timestamp_ns = i}));
    ring.close_filling();
  }
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(ring.take()->packets()[0].timestamp_ns, i);
  EXPECT_EQ(ring.take(), nullptr);
}

TEST(PacketRing, IsFullWhenTheWaitingQueueIs) {
  PacketRing ring({4096, 8, 2, 1 << 30, 1, {}});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(ring.filling()->append(kFrame, {}));
    ring.close_filling();
  }
  EXPECT_EQ(ring.filling(), nullptr);
  Batch* taken = ring.take();
  EXPECT_NE(ring.filling(), nullptr) << "a taken batch no longer waits";
  ring.release(taken);
}

TEST(PacketRing, NumbersPacketsAcrossBatches) {
  PacketRing ring({4096, 2, 4, 1 << 30, 1, {}});
  std::uint32_t expected = 0;
  for (int b = 0; b < 20; ++b) {
    while (ring.filling()->append(kFrame, {})) continue;
    ring.close_filling();
    Batch* batch = ring.take();
    for (const PacketDescriptor& packet : batch->packets()) EXPECT_EQ(packet.sequence, expected++);
    ring.release(batch);
  }
  EXPECT_EQ(expected, 40U);
}

TEST(PacketRing, NeverHandsOutABatchTwice) {
  PacketRing ring({1024, 4, 5, 1 << 30, 3, {}});
  std::mt19937 random(7);
  std::deque<Batch*> taken;
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  for (int step = 0; step < 20000; ++step) {
    switch (random() % 3) {
      case 0:
        if (Batch* batch = ring.filling()) {
          ASSERT_TRUE(batch->append(kFrame, {.timestamp_ns = in++}));
          ring.close_filling();
        }
        break;
      case 1:
        if (taken.size() < 3) {
          if (Batch* batch = ring.take()) {
            ASSERT_EQ(batch->size(), 1U);
            ASSERT_EQ(batch->packets()[0].timestamp_ns, out++);
            taken.push_back(batch);
          }
        }
        break;
      default:
        if (!taken.empty()) {
          ring.release(taken.front());
          taken.pop_front();
        }
    }
  }
  EXPECT_GT(out, 4000U);
}

TEST(Batch, LeavesHeadAndTailroomAroundEachFrame) {
  std::vector<std::uint8_t> bytes(400);
  std::vector<PacketDescriptor> descriptors(8);
  Batch batch(bytes, descriptors, {32, 16});
  ASSERT_TRUE(batch.append(kFrame, {}));
  ASSERT_TRUE(batch.append(kFrame, {}));
  EXPECT_EQ(batch.packets()[0].offset, 32U);
  EXPECT_EQ(batch.packets()[1].offset, 32U + 80 + 32) << "60 bytes and 16 behind them, to a multiple of 16";
  EXPECT_EQ(batch.frame_bytes(), 120U);
}

TEST(Batch, HoldsLentFramesWhereTheyAreBesideCopiedOnes) {
  alignas(kFrameAlignment) std::array<std::uint8_t, 256> bytes{};
  alignas(kFrameAlignment) std::array<std::uint8_t, 512> of_port{};
  PacketMemory memory;
  const auto region = memory.add(of_port);
  ASSERT_TRUE(region);
  std::vector<PacketDescriptor> descriptors(8);
  Batch batch(bytes, descriptors, {}, &memory);
  ASSERT_TRUE(batch.append(kFrame, {}));
  ASSERT_TRUE(batch.lend(*region, 131, 90, {.timestamp_ns = 7, .wire_length = 90, .in_port = 3}));
  ASSERT_TRUE(batch.append(kFrame, {}));
  EXPECT_EQ(batch.view(0).frame, bytes.data());
  EXPECT_EQ(batch.view(1).frame, of_port.data() + 131);
  EXPECT_EQ(batch.view(1).length(), 90U);
  EXPECT_EQ(batch.view(1).packet->in_port, 3U);
  EXPECT_EQ(batch.view(2).frame, bytes.data() + 64 + 96) << "a lent frame takes room, for the memory of a device";
  EXPECT_EQ(batch.lent(), 1U);
  EXPECT_EQ(batch.frame_bytes(), 60U + 90 + 60);
  EXPECT_FALSE(batch.lend(*region, 300, 40, {})) << "no room";
  EXPECT_EQ(batch.lent(), 1U);
  batch.reset(0);
  EXPECT_EQ(batch.lent(), 0U);
  ASSERT_TRUE(batch.append(kFrame, {}));
  EXPECT_EQ(batch.view(0).frame, bytes.data()) << "the descriptor's former frame was lent";
}

TEST(Batch, CountsLentFramesOnlyUpToTheGivenLength) {
  alignas(kFrameAlignment) std::array<std::uint8_t, 256> bytes{};
  alignas(kFrameAlignment) std::array<std::uint8_t, 2048> of_port{};
  PacketMemory memory;
  const PacketMemory::Region region = memory.add(of_port).value();
  std::vector<PacketDescriptor> descriptors(8);
  Batch batch(bytes, descriptors, {}, &memory, 96);
  ASSERT_TRUE(batch.lend(region, 0, 1500, {}));
  ASSERT_TRUE(batch.lend(region, 0, 1500, {}));
  EXPECT_EQ(batch.used_bytes(), 2 * 96U);
  EXPECT_FALSE(batch.lend(region, 0, 1500, {}));
  EXPECT_TRUE(batch.lend(region, 0, 64, {}));
}

TEST(Batch, IsUnchangedByAFrameThatDoesNotFit) {
  std::vector<std::uint8_t> bytes(100);
  std::vector<PacketDescriptor> descriptors(8);
  Batch batch(bytes, descriptors, {});
  ASSERT_TRUE(batch.append(kFrame, {}));
  EXPECT_FALSE(batch.append(kFrame, {}));
  EXPECT_EQ(batch.size(), 1U);
  EXPECT_EQ(batch.next_sequence(), 1U);
}

TEST(Batch, NeverUnderstatesArrivalTimes) {
  std::vector<std::uint8_t> bytes(aligned_frame(60) * 100);
  std::vector<PacketDescriptor> descriptors(100);
  Batch batch(bytes, descriptors, {});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(batch.append(kFrame, {}));
    batch.mark_arrivals(Batch::Clock::time_point(std::chrono::nanoseconds(i)));
  }
  std::size_t at = 0;
  for (const auto& mark : batch.arrivals()) {
    for (; at < mark.end; ++at) EXPECT_LE(mark.time.time_since_epoch().count(), static_cast<long>(at));
  }
  EXPECT_EQ(at, 100U);
}

TEST(Batch, SharesAMarkBetweenPollsOfASourceThatKnowsArrivals) {
  std::vector<std::uint8_t> bytes(aligned_frame(60) * 100);
  std::vector<PacketDescriptor> descriptors(100);
  Batch batch(bytes, descriptors, {});
  const auto poll = [&](std::optional<std::chrono::nanoseconds> to_clock) {
    ASSERT_TRUE(batch.append(kFrame, {}));
    batch.mark_arrivals(Batch::Clock::time_point(std::chrono::nanoseconds(batch.size())), to_clock);
  };
  for (int i = 0; i < 60; ++i) poll(std::chrono::nanoseconds{7});
  ASSERT_EQ(batch.arrivals().size(), 1U);
  EXPECT_EQ(batch.arrivals()[0].end, 60U);
  for (int i = 0; i < 20; ++i) poll(std::nullopt), poll(std::chrono::nanoseconds{7});
  EXPECT_EQ(batch.arrivals().size(), 41U);
  EXPECT_EQ(batch.arrivals().back().end, 100U);
  EXPECT_EQ(batch.arrivals().back().to_clock, std::chrono::nanoseconds{7});
}

TEST(Batch, DoesNotMixArrivalTimesOfDifferentPorts) {
  std::vector<std::uint8_t> bytes(aligned_frame(60) * 100);
  std::vector<PacketDescriptor> descriptors(100);
  Batch batch(bytes, descriptors, {});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(batch.append(kFrame, {}));
    const auto to_clock = i % 2 == 0 ? std::optional<std::chrono::nanoseconds>() : std::chrono::nanoseconds{7};
    batch.mark_arrivals(Batch::Clock::time_point(std::chrono::nanoseconds(i)), to_clock);
  }
  EXPECT_EQ(batch.arrivals().back().end, 100U) << "there was room for fewer marks than polls";
  EXPECT_EQ(batch.arrivals().back().to_clock, std::nullopt);
}

TEST(PacketRing, OpensNoBatchWhileTheWaitingQueueIsFull) {
  PacketRing ring({4096, 8, 100, 200, 1, {}});
  for (int batch = 0; batch < 2; ++batch) {
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(ring.filling()->append(kFrame, {}));
    ring.close_filling();
  }
  EXPECT_EQ(ring.filling(), nullptr) << "256 bytes wait";
  ring.release(ring.take());
  EXPECT_NE(ring.filling(), nullptr);
}

TEST(PacketRing, HasASpareBatchIfAnotherProcessMapsIt) {
  RingShape shape{4096, 8, 2, 1 << 20, 1, {}};
  shape.shared = true;
  PacketRing ring(shape);
  Batch& spare = ring.spare();
  EXPECT_GE(spare.memory(), ring.memory().data());
  EXPECT_LE(spare.memory() + 4096, ring.memory().data() + ring.memory().size());
  ASSERT_TRUE(spare.append(kFrame, {}));
  for (std::size_t i = 0; i < ring.most_batches(); ++i) {
    Batch* const batch = ring.filling();
    if (batch == nullptr) break;
    EXPECT_NE(batch->memory(), spare.memory());
    ASSERT_TRUE(batch->append(kFrame, {}));
    ring.close_filling();
    if (i == 0) static_cast<void>(ring.take());
  }
  EXPECT_EQ(spare.size(), 1U);
}

TEST(PacketRing, UsesNoMemoryForUnusedBatches) {
  const auto resident_bytes = [] {
    std::size_t all = 0;
    std::size_t resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  };
  const std::size_t before = resident_bytes();
  PacketRing ring({64 << 10, 512, 1 << 20, std::size_t{64} << 30, 1, {}});  // 64 GiB
  ASSERT_TRUE(ring.filling()->append(kFrame, {}));
  EXPECT_LT(resident_bytes() - before, std::size_t{12} << 20);
}

}  // namespace
}  // namespace penstock::ring
