// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The rings of AF_XDP, with a test in the place of the kernel.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "port/live/xdp_receiver.h"
#include "port/live/xdp_rings.h"
#include "port/live/xdp_sender.h"

namespace penstock::port {
namespace {

constexpr std::uint32_t kEntries = 4, kChunk = 2048, kChunks = 4;

template <typename Entry>
struct Shared {
  std::uint32_t producer = 0, consumer = 0, flags = 0, unused = 0;
  std::array<Entry, kEntries> entries{};

  [[nodiscard]] XdpRing<Entry> ring() {
    const xdp_ring_offset offsets{0, 4, 16, 8};
    return {reinterpret_cast<std::uint8_t*>(this), offsets, kEntries};
  }
  /// As the kernel.
  void produce(const Entry& entry) { entries[producer++ % kEntries] = entry; }
  std::vector<Entry> consume() {
    std::vector<Entry> all;
    while (consumer != producer) all.push_back(entries[consumer++ % kEntries]);
    return all;
  }
};
using Chunks = std::vector<std::uint64_t>;
using Bytes = std::vector<std::uint8_t>;

Bytes some_bytes(std::size_t length) {
  Bytes bytes(length);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{3});
  return bytes;
}

TEST(XdpRing, CountsOnPastTheEndOfItsNumbers) {
  Shared<std::uint64_t> shared;
  XdpChunkRing producer = shared.ring();
  XdpChunkRing consumer = shared.ring();
  for (std::uint64_t round = 0; round < 100; ++round) {
    for (std::uint64_t i = 0; i < kEntries; ++i) producer.put(round * 10 + i);
    EXPECT_EQ(consumer.available(), 0U);  // not published
    producer.publish();
    EXPECT_EQ(producer.room(), 0U);
    ASSERT_EQ(consumer.available(), kEntries);
    for (std::uint64_t i = 0; i < kEntries; ++i) {
      EXPECT_EQ(consumer.peek(), round * 10 + i);
      consumer.pop();
    }
    EXPECT_EQ(producer.room(), 0U);  // not released
    consumer.release();
    EXPECT_EQ(producer.room(), kEntries);
  }
}

class XdpReceive : public ::testing::Test {
 protected:
  /// The kernel receives into a chunk that it has.
  std::uint64_t arrive(std::uint64_t chunk, std::span<const std::uint8_t> bytes, std::uint32_t options = 0) {
    const std::uint64_t at = chunk + 256;
    std::memcpy(memory_.data() + at, bytes.data(), bytes.size());
    frames_.produce({at, static_cast<std::uint32_t>(bytes.size()), options});
    return at;
  }
  Bytes memory_ = Bytes(std::size_t{kChunk} * kChunks);
  Shared<std::uint64_t> fill_;
  Shared<xdp_desc> frames_;
  XdpReceiver receiver_{fill_.ring(), frames_.ring(), memory_, kChunk, kChunks};
};

TEST_F(XdpReceive, GivesAllChunksToTheKernelAtFirst) {
  EXPECT_EQ(fill_.consume(), (Chunks{0, kChunk, 2 * kChunk, 3 * kChunk}));
  EXPECT_TRUE(receiver_.front().bytes.empty());
  EXPECT_FALSE(receiver_.starved());
}

TEST_F(XdpReceive, ReturnsTheChunkOfACopiedFrameAtOnce) {
  static_cast<void>(fill_.consume());
  const Bytes frame = some_bytes(100);
  arrive(kChunk, frame);
  const XdpReceiver::Frame front = receiver_.front();
  EXPECT_EQ(Bytes(front.bytes.begin(), front.bytes.end()), frame);
  EXPECT_EQ(front.tailroom, kChunk - 256 - 100);
  receiver_.pop(false);
  EXPECT_EQ(fill_.consume(), Chunks{});
  receiver_.publish();
  EXPECT_EQ(fill_.consume(), Chunks{kChunk});
  EXPECT_EQ(frames_.consumer, 1U);
}

TEST_F(XdpReceive, KeepsTheChunkOfALentFrameUntilItIsBack) {
  static_cast<void>(fill_.consume());
  const std::uint64_t at = arrive(2 * kChunk, some_bytes(60));
  const XdpReceiver::Frame front = receiver_.front();
  EXPECT_EQ(front.at, at);
  EXPECT_EQ(front.bytes.data(), memory_.data() + at);  // in place
  receiver_.pop(true);
  receiver_.publish();
  EXPECT_EQ(frames_.consumer, 1U);
  EXPECT_EQ(fill_.consume(), Chunks{});
  receiver_.take_back(at);
  receiver_.publish();
  EXPECT_EQ(fill_.consume(), Chunks{2 * kChunk});
}

TEST_F(XdpReceive, IsStarvedWhileAllChunksAreLent) {
  const Chunks chunks = fill_.consume();
  for (const std::uint64_t chunk : chunks) {
    EXPECT_FALSE(receiver_.starved());
    arrive(chunk, some_bytes(60));
    ASSERT_FALSE(receiver_.front().bytes.empty());
    receiver_.pop(true);
  }
  EXPECT_TRUE(receiver_.starved());
  receiver_.take_back(chunks[0] + 256);
  EXPECT_FALSE(receiver_.starved());
}

TEST_F(XdpReceive, JoinsTheChunksOfAFrame) {
  static_cast<void>(fill_.consume());
  const Bytes frame = some_bytes(3000);
  const std::span all(frame);
  arrive(0, all.first(1400), kXdpContinues);
  EXPECT_TRUE(receiver_.front().bytes.empty());  // the rest is still to come
  arrive(2 * kChunk, all.subspan(1400, 1400), kXdpContinues);
  EXPECT_TRUE(receiver_.front().bytes.empty());
  arrive(kChunk, all.subspan(2800));
  const XdpReceiver::Frame front = receiver_.front();
  EXPECT_TRUE(front.is_joined);
  EXPECT_EQ(Bytes(front.bytes.begin(), front.bytes.end()), frame);
  receiver_.pop(false);
  receiver_.publish();
  EXPECT_EQ(fill_.consume(), (Chunks{0, 2 * kChunk, kChunk}));
  EXPECT_EQ(frames_.consumer, 3U);
}

TEST_F(XdpReceive, LeavesOutFramesWithoutAHeader) {
  static_cast<void>(fill_.consume());
  arrive(0, some_bytes(13));
  const std::uint64_t at = arrive(kChunk, some_bytes(14));
  EXPECT_EQ(receiver_.front().at, at);
  receiver_.pop(false);
  receiver_.publish();
  EXPECT_EQ(fill_.consume(), (Chunks{0, kChunk}));
  EXPECT_EQ(receiver_.take_wrong_length(), 1U);
  EXPECT_EQ(receiver_.take_wrong_length(), 0U);
}

class XdpSend : public ::testing::Test {
 protected:
  XdpSender sender(bool has_frags) {
    return XdpSender(-1, frames_.ring(), completion_.ring(), memory_, {kChunk, 1, 3, has_frags, false});
  }
  [[nodiscard]] Bytes bytes_of(const std::vector<xdp_desc>& parts) const {
    Bytes all;
    for (const xdp_desc& part : parts) {
      const auto from = memory_.begin() + static_cast<std::ptrdiff_t>(part.addr);
      all.insert(all.end(), from, from + part.len);
    }
    return all;
  }
  Bytes memory_ = Bytes(std::size_t{kChunk} * kChunks);
  Shared<xdp_desc> frames_;
  Shared<std::uint64_t> completion_;
};

TEST_F(XdpSend, CopiesAFrameToAChunk) {
  XdpSender sender = this->sender(false);
  const Bytes frame = some_bytes(kChunk);
  ASSERT_TRUE(sender.put(frame));
  EXPECT_TRUE(frames_.consume().empty());  // not offered
  EXPECT_EQ(sender.waiting(), 1U);
  static_cast<void>(sender.offer());
  const auto sent = frames_.consume();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].options, 0U);
  EXPECT_GE(sent[0].addr, kChunk);  // not where frames are received
  EXPECT_EQ(bytes_of(sent), frame);
  EXPECT_EQ(sender.waiting(), 0U);
  EXPECT_EQ(sender.longest_frame(), kChunk);
}

TEST_F(XdpSend, DividesALongFrame) {
  XdpSender sender = this->sender(true);
  const Bytes frame = some_bytes(2 * kChunk + 1);
  ASSERT_GE(sender.longest_frame(), frame.size());
  ASSERT_TRUE(sender.put(frame));
  static_cast<void>(sender.offer());
  const auto sent = frames_.consume();
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sent[0].options, kXdpContinues);
  EXPECT_EQ(sent[1].options, kXdpContinues);
  EXPECT_EQ(sent[2].options, 0U);
  EXPECT_EQ(bytes_of(sent), frame);
}

TEST_F(XdpSend, RefusesFramesUntilChunksAreComplete) {
  XdpSender sender = this->sender(true);
  const Bytes frame = some_bytes(60);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(sender.put(frame));
  EXPECT_FALSE(sender.put(frame));
  static_cast<void>(sender.offer());
  const auto sent = frames_.consume();
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_FALSE(sender.put(frame));  // consumed, but not complete
  completion_.produce(sent[1].addr);
  EXPECT_FALSE(sender.put(some_bytes(kChunk + 1)));  // takes two
  EXPECT_TRUE(sender.put(frame));
  EXPECT_FALSE(sender.put(frame));
  static_cast<void>(sender.offer());
  EXPECT_EQ(frames_.consume().at(0).addr, sent[1].addr);
}

}  // namespace
}  // namespace penstock::port
