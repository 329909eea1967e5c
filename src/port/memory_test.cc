// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "packet/testing/packet_builder.h"
#include "port/testing/capture_bytes.h"
#include "port/testing/port_harness.h"

namespace penstock::port {
namespace {

using testing::Bytes;
using testing::CaptureBytes;
using testing::Captured;
using testing::drain;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::must_make;
using testing::OwnBatch;
using ::testing::SizeIs;
using testing::TemporaryFolder;
using testing::write_capture;
using testing::write_file;

/// `count` packets, each of another flow, 1 ms apart.
std::vector<Captured> packets(unsigned count) {
  std::vector<Captured> all;
  for (unsigned i = 0; i < count; ++i) {
    Bytes frame = penstock::testing::packet()
                      .eth()
                      .ipv4("10.0.0.1", "10.0.0.2")
                      .udp(static_cast<std::uint16_t>(1000 + i), 53)
                      .payload(std::string(i % 900, 'x'))
                      .bytes();
    const auto length = static_cast<std::uint32_t>(frame.size());
    all.push_back({1'000'000'000 + i * 1'000'000ULL, length + i % 3, LinkType::ethernet, std::move(frame)});
  }
  return all;
}

TEST(Memory, ReplaysThePacketsOfTheCapturesInOrder) {
  const TemporaryFolder folder;
  const auto all = packets(500);
  write_capture(folder / "a.pcap", {all.begin(), all.begin() + 200});
  write_capture(folder / "b.pcapng.zst", {all.begin() + 200, all.end()});
  auto port = must_make("memory", {{"read", {folder / "a.pcap", folder / "b.pcapng.zst"}}}, 3);
  ASSERT_TRUE(port->open(1));
  EXPECT_TRUE(port->lossless());
  EXPECT_EQ(port->progress(), 0.0);
  EXPECT_THAT(drain(*port, 1, OwnBatch(4000, 7, {8, 8})).front(), ElementsAreArray(all));
  EXPECT_EQ(port->progress(), 1.0);
  EXPECT_THAT(port->close(), IsEmpty());
}

TEST(Memory, ContinuesTimeFromPassToPass) {
  const TemporaryFolder folder;
  const auto all = packets(10);
  write_capture(folder / "a.pcap", all);
  auto port = must_make("memory", {{"read", {folder / "a.pcap"}}, {"loop", {"3"}}});
  ASSERT_TRUE(port->open(1));
  const auto got = drain(*port, 1).front();
  ASSERT_THAT(got, SizeIs(30));
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].bytes, all[i % 10].bytes);
    EXPECT_EQ(got[i].timestamp_ns, 1'000'000'000 + i * 1'000'000) << "as if the 1 ms between packets never ended";
  }
}

TEST(Memory, DeliversEveryPacketOfEveryPassToExactlyOneWorker) {
  const TemporaryFolder folder;
  const auto all = packets(300);
  write_capture(folder / "a.pcap", all);
  auto port = must_make("memory", {{"read", {folder / "a.pcap"}}, {"loop", {"2"}}});
  ASSERT_TRUE(port->open(3));
  std::map<std::string, int> seen;
  for (const auto& of_worker : drain(*port, 3)) {
    EXPECT_GT(of_worker.size(), 100U);
    for (const Captured& packet : of_worker) ++seen[std::string(packet.bytes.begin(), packet.bytes.end())];
  }
  EXPECT_THAT(seen, SizeIs(300));
  for (const auto& [bytes, times] : seen) EXPECT_EQ(times, 2);
}

TEST(Memory, ReplaysForEverWithLoop0) {
  const TemporaryFolder folder;
  write_capture(folder / "a.pcap", packets(3));
  auto port = must_make("memory", {{"read", {folder / "a.pcap"}}, {"loop", {"0"}}});
  ASSERT_TRUE(port->open(1));
  EXPECT_EQ(port->progress(), std::nullopt);
  OwnBatch batch;
  for (int i = 0; i < 5; ++i) {
    batch->reset(0);
    EXPECT_EQ(port->rx(0)->poll(*batch), RxStatus::more);
    EXPECT_EQ(batch->size(), batch->capacity_packets());
  }
}

TEST(Memory, EndsImmediatelyForAWorkerWithoutPackets) {
  const TemporaryFolder folder;
  write_capture(folder / "empty.pcap", {});
  for (const char* loop : {"0", "1"}) {
    auto port = must_make("memory", {{"read", {folder / "empty.pcap"}}, {"loop", {loop}}});
    ASSERT_TRUE(port->open(2));
    for (const auto& of_worker : drain(*port, 2)) EXPECT_THAT(of_worker, IsEmpty());
  }
}

TEST(Memory, RefusesMoreThanItsLimit) {
  const TemporaryFolder folder;
  write_capture(folder / "a.pcap", packets(300));
  auto port = must_make("memory", {{"read", {folder / "a.pcap"}}, {"limit", {"10KiB"}}});
  EXPECT_THAT(to_string(port->open(1).error()), HasSubstr("over 10240 bytes"));
}

TEST(Memory, RefusesABrokenCapture) {
  const TemporaryFolder folder;
  write_file(folder / "cut.pcap", CaptureBytes().pcap_header().pcap_record(1, 2, 60, 60).u32(0).bytes());
  auto port = must_make("memory", {{"read", {folder / "cut.pcap"}}});
  EXPECT_THAT(to_string(port->open(1).error()), HasSubstr("cut.pcap: the capture is broken after packet 0"));
}

TEST(Memory, EndsWithAnErrorIfAFrameDoesNotFitInABatch) {
  const TemporaryFolder folder;
  write_capture(folder / "a.pcap", packets(300));
  auto port = must_make("memory", {{"read", {folder / "a.pcap"}}});
  ASSERT_TRUE(port->open(1));
  EXPECT_THAT(drain(*port, 1, OwnBatch(112, 8)).front(), SizeIs(71));  // 42 bytes of headers, then 0, 1, 2 … of payload
  EXPECT_THAT(to_string(port->close()), HasSubstr("113 bytes"));
}

TEST(Memory, NamesTheCaptureOfAFrameThatDoesNotFitInABatch) {
  const TemporaryFolder folder;
  write_capture(folder / "a.pcap", packets(50));
  write_capture(folder / "b.pcap", packets(300));
  auto port = must_make("memory", {{"read", {folder / "a.pcap", folder / "b.pcap"}}});
  ASSERT_TRUE(port->open(1));
  EXPECT_THAT(drain(*port, 1, OwnBatch(112, 8)).front(), SizeIs(50 + 71));
  EXPECT_EQ(to_string(port->close()),
            folder / "b.pcap" +
                ": playing ended at packet 72: the frame does not fit in a batch: found 113 bytes, "
                "expected larger batches (run: batch: bytes)");
}

TEST(Null, AcceptsEveryPacketAndReadsNone) {
  auto port = must_make("null", {});
  ASSERT_TRUE(port->open(2));
  EXPECT_FALSE(port->reads());
  EXPECT_TRUE(port->writes());
  EXPECT_EQ(port->rx(0), nullptr);
  auto all = packets(5);
  EXPECT_EQ(testing::send(*port->tx(1), all), 5U);
  EXPECT_THAT(port->close(), IsEmpty());
}

}  // namespace
}  // namespace penstock::port
