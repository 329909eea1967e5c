// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/intake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "packet/testing/packet_builder.h"
#include "port/live/testing/offload_oracle.h"
#include "port/testing/port_harness.h"
#include "port/worker_of.h"

namespace penstock::port {
namespace {

using namespace offload_oracle;
using penstock::testing::packet;
using testing::OwnBatch;
using Taken = Intake::Taken;
using FrameBytes = offload_oracle::Bytes;

constexpr PortIndex kPort = 3;

/// A frame in the memory of a queue.
struct Queued {
  explicit Queued(FrameBytes frame, const VirtioHeader& header = {}) : bytes(std::move(frame)) {
    received.bytes = bytes;
    received.wire_length = static_cast<std::uint32_t>(bytes.size());
    received.timestamp_ns = 77;
    received.offload = header;
  }
  explicit Queued(const Frame& frame) : Queued(frame.bytes, frame.header) {}
  FrameBytes bytes;
  ReceivedFrame received;
};

Frame made(std::size_t payload, std::uint16_t size) {
  Shape shape;
  shape.payload = payload;
  shape.gso_size = size;
  return make_frame(shape);
}

std::vector<FrameBytes> frames_in(Batch& batch) {
  std::vector<FrameBytes> frames;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const PacketView view = batch.view(i);
    EXPECT_EQ(view.packet->in_port, kPort);
    EXPECT_EQ(view.packet->timestamp_ns, 77U);
    EXPECT_EQ(view.packet->wire_length, view.packet->length);
    frames.emplace_back(view.frame, view.frame + view.packet->length);
  }
  return frames;
}

/// All that a frame becomes, in batches of `packets`; and how many of them it took.
std::vector<FrameBytes> take_all(Intake& intake, Queued& frame, std::size_t packets, std::size_t* batches = nullptr) {
  std::vector<FrameBytes> all;
  for (std::size_t count = 1;; ++count) {
    OwnBatch batch(1 << 20, packets);
    const Taken taken = intake.take(*batch, frame.received);
    for (FrameBytes& one : frames_in(*batch)) all.push_back(std::move(one));
    if (taken != Taken::full) {
      if (batches != nullptr) *batches = count;
      return all;
    }
    EXPECT_EQ(batch->size(), packets);
  }
}

TEST(Intake, ContinuesAFrameOfSegmentsInTheNextBatch) {
  for (const std::size_t packets : {1U, 3U, 7U, 10U, 11U}) {
    const Frame frame = made(9500, 1000);
    Intake intake(0, kPort, nullptr);
    Queued queued(frame);
    std::size_t batches = 0;
    const auto segments = take_all(intake, queued, packets, &batches);
    ASSERT_EQ(segments.size(), 10U);
    EXPECT_EQ(batches, (10 + packets - 1) / packets);
    FrameBytes joined;
    for (const FrameBytes& segment : segments) {
      const Parsed parsed = parse(segment, frame.shape);
      EXPECT_EQ(parsed.error, "");
      joined.insert(joined.end(), parsed.payload.begin(), parsed.payload.end());
    }
    EXPECT_EQ(joined, parse(frame.bytes, frame.shape).payload);
    EXPECT_EQ(intake.counts().split.get(), 1U);
    EXPECT_EQ(intake.counts().segments.get(), 10U);
    // The next frame is not affected.
    Queued next(packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).payload("x").bytes());
    EXPECT_THAT(take_all(intake, next, 1), ::testing::ElementsAre(next.bytes));
  }
}

TEST(Intake, CompletesAChecksumOnce) {
  Shape shape;
  shape.payload = 100;
  Frame frame = make_frame(shape);
  frame.header.gso_type = 0;
  // As the kernel leaves it: the sum of the pseudo header.
  const FrameBytes pseudo = [&] {
    FrameBytes sum(frame.bytes.begin() + 26, frame.bytes.begin() + 34);
    for (const unsigned byte : {0U, 6U, 0U, 120U}) sum.push_back(static_cast<std::uint8_t>(byte));
    return sum;
  }();
  put16(frame.bytes, 34 + 16, 0xffff - naive_checksum(pseudo, 0));
  Intake intake(0, kPort, nullptr);
  Queued queued(frame);
  OwnBatch batch(1 << 20, 1);
  ASSERT_TRUE(batch->append(FrameBytes(60), {}));
  EXPECT_EQ(intake.take(*batch, queued.received), Taken::full);  // which must not spoil it
  EXPECT_EQ(intake.take(*batch, queued.received), Taken::full);
  const auto taken = take_all(intake, queued, 1);
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(parse(taken[0], shape).error, "");
  EXPECT_EQ(intake.counts().checksums.get(), 1U);
}

TEST(Intake, CountsWhatItCannotTake) {
  Intake intake(0, kPort, nullptr);
  OwnBatch batch(4096, 16);
  Frame frame = made(3000, 1000);
  frame.header.checksum_start = 5;
  Queued malformed(frame);
  EXPECT_EQ(intake.take(*batch, malformed.received), Taken::copied);
  frame.header.gso_type = 0;
  frame.header.checksum_start = 60000;
  Queued outside(frame);
  EXPECT_EQ(intake.take(*batch, outside.received), Taken::copied);
  EXPECT_EQ(intake.counts().malformed.get(), 2U);
  Queued long_frame(FrameBytes(5000));
  EXPECT_EQ(intake.take(*batch, long_frame.received), Taken::copied);
  EXPECT_EQ(intake.counts().too_long.get(), 1U);
  Queued cut(made(3000, 1000));
  ++cut.received.wire_length;
  EXPECT_EQ(intake.take(*batch, cut.received), Taken::copied);
  EXPECT_EQ(intake.counts().too_long.get(), 2U);
  EXPECT_TRUE(batch->empty());
}

TEST(Intake, GivesUpTheRestOfAFrame) {
  const Frame frame = made(9500, 1000);
  const std::size_t headers = frame.bytes.size() - 9500;
  for (const std::size_t taken : {0U, 4U, 9U}) {
    Intake intake(0, kPort, nullptr);
    Queued queued(frame);
    if (taken > 0) {
      OwnBatch batch(1 << 20, taken);
      EXPECT_EQ(intake.take(*batch, queued.received), Taken::full);
      EXPECT_EQ(batch->size(), taken);
    }
    const auto left = intake.give_up(queued.received);
    EXPECT_EQ(left.packets, 10 - taken);
    EXPECT_EQ(left.bytes, (10 - taken) * headers + 9500 - taken * 1000);
    Queued next(frame);
    EXPECT_EQ(take_all(intake, next, 100).size(), 10U);
  }
  Intake intake(0, kPort, nullptr);
  Queued plain(FrameBytes(60));
  EXPECT_EQ(intake.give_up(plain.received).packets, 1U);
  EXPECT_EQ(intake.give_up(plain.received).bytes, 60U);
}

TEST(Intake, LendsFramesInPlace) {
  FrameBytes memory(4096);
  PacketMemory packets;
  const auto region = packets.add(memory);
  ASSERT_TRUE(region);
  FrameBytes bytes(1 << 16);
  std::vector<PacketDescriptor> descriptors(1);
  Batch batch(bytes, descriptors, {}, &packets);
  Intake intake(0, kPort, nullptr);
  ReceivedFrame frame;
  frame.bytes = std::span(memory).subspan(256, 100);
  frame.wire_length = 100;
  frame.can_be_lent = true;
  frame.region = *region;
  frame.offset = 256;
  EXPECT_EQ(intake.take(batch, frame), Taken::lent);
  EXPECT_EQ(batch.view(0).frame, memory.data() + 256);
  EXPECT_EQ(intake.take(batch, frame), Taken::full);
}

TEST(Intake, GivesEachSegmentToTheWorkerOfItsFlow) {
  constexpr unsigned kWorkers = 2;
  unsigned own = 0, others = 0;
  for (unsigned seed = 1; seed < 30; ++seed) {
    Exchange exchange(kWorkers);
    Intake intake(0, kPort, &exchange);
    Shape shape;
    shape.payload = 9500;
    shape.seed = seed;
    const Frame frame = make_frame(shape);
    const unsigned worker =
        worker_of(frame.bytes, static_cast<std::uint32_t>(frame.bytes.size()), LinkType::ethernet, kWorkers);
    Queued queued(frame);
    auto segments = take_all(intake, queued, 3);
    if (worker == 1) {
      EXPECT_TRUE(segments.empty());
      OwnBatch batch;
      EXPECT_EQ(exchange.poll(1, *batch, kPort), RxStatus::idle);
      segments = frames_in(*batch);
    }
    (worker == 0 ? own : others) += 1;
    ASSERT_EQ(segments.size(), 10U);
    for (const FrameBytes& segment : segments) EXPECT_EQ(parse(segment, shape).error, "");
  }
  EXPECT_GT(own, 0U);
  EXPECT_GT(others, 0U);
}

}  // namespace
}  // namespace penstock::port
