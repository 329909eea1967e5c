// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What an order counts as for the scheduler. Which orders are refused is in hostile_test.cc and order_fuzz.cc.

#include "proxy/order_check.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/shared_memory.h"

namespace penstock::proxy {
namespace {

constexpr std::size_t kMemory = 1 << 20;
constexpr std::size_t kDescriptorsAt = 768 << 10;
constexpr std::uint32_t kFrame = 48;

class OrderBytes : public ::testing::Test {
 protected:
  OrderBytes() {
    const int file = make_shared_file("orders", kMemory);
    const auto memory = std::make_shared<TenantMemory>(file, kMemory);
    ::close(file);
    memory->set_opening(std::make_shared<int>());
    descriptors_ = reinterpret_cast<PacketDescriptor*>(memory->bytes().data() + kDescriptorsAt);
    memories_[0] = memory;
    segment_.stages = {{.function = 0}};
    segment_.frames_up = true;
  }
  /// 0: it was refused.
  std::uint64_t bytes_of(std::uint32_t packets, std::uint32_t used_bytes,
                         Order::Frames frames = Order::Frames::in_batch) {
    ring::LaneShape shape;
    shape.batch_bytes = kDescriptorsAt;
    shape.batch_packets = 4096;
    shape.segments = {segment_};
    check_.emplace(shape);
    Order order;
    order.packets = packets;
    order.used_bytes = used_bytes;
    order.packets_at = kDescriptorsAt;
    order.frames = frames;
    for (std::uint32_t i = 0; i < packets; ++i) {
      descriptors_[i] = PacketDescriptor{};
      descriptors_[i].offset = frames == Order::Frames::in_batch ? i * kFrame : 0;
      descriptors_[i].length = kFrame;
    }
    std::vector<std::uint8_t> packed;
    return check_->check(order, memories_, list_.data(), packed) == nullptr ? check_->bytes() : 0;
  }

  ring::SegmentShape segment_;
  std::vector<std::uint64_t> list_ = std::vector<std::uint64_t>(4096);
  std::optional<OrderCheck> check_;

 private:
  TenantMemories memories_;
  PacketDescriptor* descriptors_ = nullptr;
};

TEST_F(OrderBytes, AreThoseOfFramesIfAllElseIsLess) {
  EXPECT_EQ(bytes_of(100, 100 * kFrame), 100 * kFrame);
  segment_.frames_up = false;
  EXPECT_EQ(bytes_of(100, 100 * kFrame), 100 * kFrame) << "also if only headers are sent";
}

// A tenant says of its lanes how much its stages have for each packet, and all of that crosses.
TEST_F(OrderBytes, AreThoseOfStatesAndFindingsIfThatIsMore) {
  segment_.stages = {{.function = 0, .state_bytes = 4096}, {.function = 1, .state_bytes = 8}};
  EXPECT_GE(bytes_of(1000, 1000 * kFrame), 1000 * 4104);
  segment_.stages = {{.function = 0, .findings_bytes = 4096}};
  EXPECT_GE(bytes_of(1000, 1000 * kFrame), 1000 * 4096);
}

TEST_F(OrderBytes, IncludeWhatLiesBetweenFrames) {
  list_[0] = listed_frame(0, 0);
  list_[1] = listed_frame(0, 512 << 10);
  EXPECT_EQ(bytes_of(2, 0, Order::Frames::listed), (512 << 10) + kFrame);
  EXPECT_EQ(bytes_of(2, 0, Order::Frames::gathered), 2 * kFrame) << "each is copied by itself";
}

}  // namespace
}  // namespace penstock::proxy
