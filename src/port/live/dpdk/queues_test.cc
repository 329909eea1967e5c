// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/dpdk/queues.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace penstock::port::dpdk {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t kBufferBytes = 512;
constexpr std::uint32_t kHeadroom = 128;

/// A device with 64 buffers, which the test fills and empties. A buffer is known by its number from 1.
class FakeDevice final : public Device {
 public:
  FakeDevice() : memory_(64 * kBufferBytes) {}

  /// The next frame to be received, in this buffer.
  void arrives(std::size_t buffer, std::size_t length = 60, std::uint32_t headroom = kHeadroom) {
    std::uint8_t* const bytes = memory_.data() + (buffer - 1) * kBufferBytes + headroom;
    std::fill_n(bytes, length, static_cast<std::uint8_t>(buffer));
    arrivals_.push_back({as_buffer(buffer), bytes, static_cast<std::uint32_t>(length), headroom,
                         static_cast<std::uint32_t>(kBufferBytes - headroom - length)});
  }
  /// The same, in several buffers.
  void arrives_in_parts(std::size_t buffer) {
    arrives(buffer);
    arrivals_.back().bytes = nullptr;
  }

  unsigned receive_queues() const noexcept override { return 1; }
  unsigned send_queues() const noexcept override { return 1; }
  std::span<std::uint8_t> receive_memory() const noexcept override { return memory_; }
  std::string start() override { return ""; }
  void stop() noexcept override {}
  std::size_t receive(unsigned, std::span<Received> to) noexcept override {
    const std::size_t count = std::min(to.size(), arrivals_.size());
    std::copy_n(arrivals_.begin(), count, to.begin());
    arrivals_.erase(arrivals_.begin(), arrivals_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }
  void join(const Received& frame, std::uint8_t* to) noexcept override { std::fill_n(to, frame.length, 0xee); }
  void give_back(std::span<const Buffer> buffers) noexcept override {
    for (const Buffer buffer : buffers) back.push_back(reinterpret_cast<std::uintptr_t>(buffer));
  }
  Buffer copy(std::span<const std::uint8_t> frame) noexcept override {
    return has_buffers ? as_buffer(frame[0]) : nullptr;
  }
  std::size_t send(unsigned, std::span<Buffer> frames) noexcept override {
    const std::size_t count = std::min(frames.size(), takes);
    takes -= count;
    for (const Buffer frame : frames.first(count)) sent.push_back(reinterpret_cast<std::uintptr_t>(frame));
    return count;
  }
  bool is_up() noexcept override { return up; }
  DeviceCounts counts() const override { return {}; }

  bool up = true, has_buffers = true;
  std::size_t takes = 1000;          // frames that it will take
  std::vector<std::uintptr_t> back;  // buffers, in the order in which they were given back
  std::vector<std::uintptr_t> sent;

 private:
  static Buffer as_buffer(std::size_t number) { return reinterpret_cast<Buffer>(number); }

  mutable std::vector<std::uint8_t> memory_;
  std::vector<Received> arrivals_;
};

class DpdkRxTest : public ::testing::Test {
 protected:
  DpdkRxTest() : region_(memory_.add(device_.receive_memory()).value()) {}

  [[nodiscard]] DpdkRx queue(std::size_t most_lent, FrameRoom room = {}, Exchange* exchange = nullptr) {
    ReceiveSide side;
    side.device = &device_;
    side.exchange = exchange;
    side.region = region_;
    side.memory = device_.receive_memory();
    side.room = room;
    side.most_lent = most_lent;
    return DpdkRx(0, true, side);
  }
  [[nodiscard]] Batch batch(std::size_t packets = 64) {
    return {bytes_, std::span(descriptors_).first(packets), {}, &memory_};
  }
  /// The first byte of each frame: the number of its buffer.
  static std::vector<int> frames_of(Batch& batch) {
    std::vector<int> frames;
    for (std::size_t i = 0; i < batch.size(); ++i) frames.push_back(batch.view(i).frame[0]);
    return frames;
  }

  FakeDevice device_;
  PacketMemory memory_;
  PacketMemory::Region region_;
  alignas(kFrameAlignment) std::array<std::uint8_t, 1 << 16> bytes_;
  std::array<PacketDescriptor, 64> descriptors_;
};

TEST_F(DpdkRxTest, LendsFramesAndGivesTheirBuffersBackInOrderOnceTheyHaveLeft) {
  DpdkRx rx = queue(4);
  Batch all = batch();
  for (const std::size_t buffer : {1, 2, 3}) device_.arrives(buffer);
  EXPECT_EQ(rx.poll(all), RxStatus::idle);
  EXPECT_THAT(frames_of(all), ElementsAre(1, 2, 3));
  EXPECT_EQ(all.lent(), 3U);
  EXPECT_THAT(device_.back, IsEmpty());
  rx.take_back(2);
  EXPECT_THAT(device_.back, ElementsAre(1, 2));
  for (const std::size_t buffer : {4, 5, 6}) device_.arrives(buffer);  // around the end of the ring of lent buffers
  EXPECT_EQ(rx.poll(all), RxStatus::idle);
  EXPECT_EQ(all.lent(), 6U);
  rx.take_back(4);
  EXPECT_THAT(device_.back, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(DpdkRxTest, CopiesFramesBeyondThoseThatItMayLend) {
  DpdkRx rx = queue(2);
  Batch all = batch();
  for (const std::size_t buffer : {1, 2, 3, 4}) device_.arrives(buffer);
  EXPECT_EQ(rx.poll(all), RxStatus::idle);
  EXPECT_THAT(frames_of(all), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(all.lent(), 2U);
  EXPECT_EQ(rx.lent(), 2U);
  EXPECT_THAT(device_.back, ElementsAre(3, 4));
}

TEST_F(DpdkRxTest, CopiesFramesThatLackRoomOrAreInSeveralBuffers) {
  DpdkRx rx = queue(8, {64, 40});
  Batch all = batch();
  device_.arrives(1);
  device_.arrives(2, 60, 63);
  device_.arrives(3, kBufferBytes - kHeadroom - 39);
  device_.arrives(4, kBufferBytes - kHeadroom - 40);
  device_.arrives_in_parts(5);
  EXPECT_EQ(rx.poll(all), RxStatus::idle);
  EXPECT_THAT(frames_of(all), ElementsAre(1, 2, 3, 4, 0xee));
  EXPECT_EQ(all.lent(), 2U);
  EXPECT_THAT(device_.back, ElementsAre(2, 3, 5));
}

TEST_F(DpdkRxTest, ContinuesAFullBatchInTheNext) {
  DpdkRx rx = queue(8);
  Batch first = batch(2);
  for (const std::size_t buffer : {1, 2, 3}) device_.arrives(buffer);
  EXPECT_EQ(rx.poll(first), RxStatus::more);
  EXPECT_THAT(frames_of(first), ElementsAre(1, 2));
  Batch second = batch();
  EXPECT_EQ(rx.poll(second), RxStatus::idle);
  EXPECT_THAT(frames_of(second), ElementsAre(3));
}

TEST_F(DpdkRxTest, ReceivesDuringAFloodFromOtherWorkers) {
  Exchange exchange(2);
  DpdkRx rx = queue(8, {}, &exchange);
  device_.arrives(1);
  device_.arrives(2);
  const std::vector<std::uint8_t> other(60, 9);  // not IP, so it belongs to worker 0 too
  std::vector<int> received;
  for (int poll = 0; poll < 2; ++poll) {
    for (int i = 0; i < 2; ++i) ASSERT_FALSE(exchange.keeps(1, {other, 0, 60}));
    Batch small = batch(2);
    EXPECT_EQ(rx.poll(small), RxStatus::more);
    for (const int frame : frames_of(small)) received.push_back(frame);
  }
  EXPECT_THAT(received, ::testing::UnorderedElementsAre(1, 2, 9, 9));
}

TEST_F(DpdkRxTest, EndsWithAllBuffersGivenBack) {
  DpdkRx rx = queue(8);
  Batch small = batch(2);
  for (const std::size_t buffer : {1, 2, 3, 4}) device_.arrives(buffer);
  EXPECT_EQ(rx.poll(small), RxStatus::more);
  EXPECT_EQ(rx.end(), 2U) << "frames that were received, but not taken in";
  std::ranges::sort(device_.back);
  EXPECT_THAT(device_.back, ElementsAre(1, 2, 3, 4));
}

class DpdkTxTest : public ::testing::Test {
 protected:
  /// Sends frames whose first bytes are these. Returns how many were accepted.
  std::size_t send(DpdkTx& tx, const std::vector<int>& frames, std::size_t length = 60) {
    frames_.assign(frames.size(), std::vector<std::uint8_t>(length));
    packets_.assign(frames.size(), PacketDescriptor{});
    std::vector<PacketView> views;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      frames_[i][0] = static_cast<std::uint8_t>(frames[i]);
      packets_[i].length = static_cast<decltype(packets_[i].length)>(length);
      packets_[i].link_type = LinkType::ethernet;
      views.push_back({frames_[i].data(), &packets_[i]});
    }
    return tx.send(views);
  }

  FakeDevice device_;
  std::vector<std::vector<std::uint8_t>> frames_;
  std::vector<PacketDescriptor> packets_;
};

TEST_F(DpdkTxTest, OffersAgainWhatTheDeviceHasNotTaken) {
  DpdkTx tx(device_, 0, nullptr, 8, 1500);
  device_.takes = 2;
  EXPECT_EQ(send(tx, {1, 2, 3}), 3U);
  EXPECT_EQ(tx.flush().packets, 0U);
  EXPECT_EQ(tx.departures().left, 2U);
  EXPECT_EQ(send(tx, {4}), 1U);
  device_.takes = 10;
  EXPECT_EQ(tx.departures().left, 4U);
  EXPECT_THAT(device_.sent, ElementsAre(1, 2, 3, 4));
}

TEST_F(DpdkTxTest, RefusesWhatDoesNotFit) {
  DpdkTx tx(device_, 0, nullptr, 2, 1500);
  device_.takes = 0;
  EXPECT_EQ(send(tx, {1, 2, 3}), 2U);
  EXPECT_FALSE(packets_[2].verdict.alive());
  EXPECT_EQ(tx.refusals().ring_full.get(), 1U);
  EXPECT_EQ(send(tx, {4}, 1515), 0U);
  EXPECT_EQ(tx.refusals().too_long.get(), 1U);
}

TEST_F(DpdkTxTest, LosesWhatWaitsWhenTheLinkGoesDown) {
  DpdkTx tx(device_, 0, nullptr, 8, 1500);
  device_.takes = 1;
  EXPECT_EQ(send(tx, {1, 2, 3}), 3U);
  device_.up = false;
  const Lost lost = tx.flush();
  EXPECT_EQ(lost.packets, 2U);
  EXPECT_EQ(lost.bytes, 120U);
  EXPECT_EQ(tx.departures().left, 3U);
  EXPECT_THAT(device_.back, ElementsAre(2, 3));
  EXPECT_EQ(send(tx, {4}), 0U);
  EXPECT_EQ(tx.refusals().down.get(), 3U);
}

TEST_F(DpdkTxTest, LeavesAQueueToTheWorkerThatUsesIt) {
  SendQueue turn;
  DpdkTx tx(device_, 0, &turn, 8, 1500);
  turn.busy = true;
  EXPECT_EQ(send(tx, {1}), 1U);
  EXPECT_EQ(tx.flush().packets, 0U);
  EXPECT_THAT(device_.sent, IsEmpty());
  turn.busy = false;
  EXPECT_EQ(tx.departures().left, 1U);
  EXPECT_FALSE(turn.busy);
}

TEST_F(DpdkTxTest, GivesUpADeviceThatTakesNothingAtTheEnd) {
  DpdkTx tx(device_, 0, nullptr, 8, 1500);
  device_.takes = 0;
  EXPECT_EQ(send(tx, {1}), 1U);
  tx.stop();
  for (int i = 0; i < 2000; ++i) static_cast<void>(tx.departures());
  EXPECT_EQ(tx.departures().left, 1U);
  EXPECT_EQ(tx.flush().packets, 1U);
}

}  // namespace
}  // namespace penstock::port::dpdk
