// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <future>
#include <map>
#include <numeric>
#include <random>

#include "base/testing/file_size_limit.h"
#include "packet/testing/fragments.h"
#include "packet/testing/packet_builder.h"
#include "port/byte_sink.h"
#include "port/testing/capture_bytes.h"
#include "port/testing/port_harness.h"

namespace penstock::port {
namespace {

using penstock::testing::FileSizeLimit;
using testing::Bytes;
using testing::CaptureBytes;
using testing::Captured;
using testing::drain;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::make_port;
using testing::must_make;
using testing::OwnBatch;
using testing::read_captures;
using testing::read_file;
using ::testing::SizeIs;
using testing::TemporaryFolder;
using testing::write_capture;
using testing::write_file;
using testing::Written;

constexpr std::uint64_t kSecond = 1'000'000'000;

/// Frames of many lengths, some of them truncated by a snapshot length. Their times are whole microseconds.
std::vector<Captured> some_packets(std::size_t count, std::uint64_t step_ns = 1000) {
  std::vector<Captured> packets;
  for (std::size_t i = 0; i < count; ++i) {
    Bytes frame(i * 37 % 1600);
    for (std::size_t b = 0; b < frame.size(); ++b) frame[b] = static_cast<std::uint8_t>(i + b * 7);
    const auto length = static_cast<std::uint32_t>(frame.size());
    packets.push_back(
        {1'700'000'000 * kSecond + i * step_ns, length + (i % 5 == 0 ? 100 : 0), LinkType::ethernet, std::move(frame)});
  }
  return packets;
}

std::uint64_t bytes_of(const std::vector<Captured>& packets) {
  std::uint64_t bytes = 0;
  for (const Captured& packet : packets) bytes += packet.bytes.size();
  return bytes;
}

/// `flows` UDP flows. The payload is the packet's number within its flow.
std::vector<Captured> packets_of_flows(unsigned flows, unsigned each) {
  std::vector<Captured> packets;
  for (unsigned n = 0; n < each; ++n) {
    for (unsigned flow = 0; flow < flows; ++flow) {
      const std::string a = "10.0.0." + std::to_string(flow % 250 + 1);
      const bool back = n % 2 == 1;  // every second packet goes in the other direction
      const auto port = static_cast<std::uint16_t>(1000 + flow);
      Bytes frame = penstock::testing::packet()
                        .eth()
                        .ipv4(back ? "192.0.2.1" : a, back ? a : "192.0.2.1")
                        .udp(back ? 53 : port, back ? port : 53)
                        .payload(std::string(1, static_cast<char>(n)))
                        .bytes();
      const auto length = static_cast<std::uint32_t>(frame.size());
      packets.push_back({kSecond + packets.size() * 1000, length, LinkType::ethernet, std::move(frame)});
    }
  }
  return packets;
}

TEST(Pcap, WritesWhatItReadInEveryFormatCompressionAndPrecision) {
  const TemporaryFolder folder;
  for (const char* name : {"a.pcap", "a.pcapng", "a.pcap.gz", "a.pcap.zst", "a.pcapng.gz", "a.pcapng.zst", "a"}) {
    for (const char* precision : {"auto", "us", "ns"}) {
      const auto packets = some_packets(500);
      const Written written = write_capture(folder / name, packets, precision);
      EXPECT_EQ(written.taken, packets.size());
      EXPECT_THAT(written.errors, IsEmpty()) << to_string(written.errors);
      const auto read = read_captures({folder / name});
      EXPECT_THAT(read.errors, IsEmpty()) << name << ": " << to_string(read.errors);
      EXPECT_THAT(read.packets, ElementsAreArray(packets)) << name;
    }
  }
}

TEST(Pcap, WritesMoreInOneSendThanFitsInABuffer) {
  const TemporaryFolder folder;
  const auto packets = some_packets(5000);  // 4 MB
  for (const char* name : {"a.pcap", "a.pcapng"}) {
    EXPECT_EQ(write_capture(folder / name, packets).taken, packets.size());
    EXPECT_THAT(read_captures({folder / name}).packets, ElementsAreArray(packets)) << name;
  }
}

TEST(Pcap, CompressesAccordingToTheName) {
  const TemporaryFolder folder;
  write_capture(folder / "a.pcap.gz", some_packets(5));
  write_capture(folder / "a.pcap.zst", some_packets(5));
  EXPECT_EQ(read_file(folder / "a.pcap.gz").at(0), 0x1f);
  EXPECT_EQ(read_file(folder / "a.pcap.zst").at(0), 0x28);
}

TEST(Pcap, KeepsEveryDigitOfTheTimeByDefault) {
  const TemporaryFolder folder;
  const auto packets = some_packets(50, 1001);
  for (const char* name : {"a.pcap", "a.pcapng"}) {
    EXPECT_THAT(write_capture(folder / name, packets).errors, IsEmpty());
    EXPECT_THAT(read_captures({folder / name}).packets, ElementsAreArray(packets));
  }
}

TEST(Pcap, TruncatesTimesToMicrosecondsOnRequest) {
  const TemporaryFolder folder;
  EXPECT_THAT(write_capture(folder / "a.pcap", some_packets(50, 1001), "us").errors, IsEmpty());
  const auto read = read_captures({folder / "a.pcap"});
  ASSERT_THAT(read.packets, SizeIs(50));
  EXPECT_EQ(read.packets[49].timestamp_ns, some_packets(50, 1001)[49].timestamp_ns / 1000 * 1000);
}

TEST(Pcap, ReportsTimesThatNeedMoreDigitsThanTheFileHas) {
  const TemporaryFolder folder;
  auto port = must_make("pcap", {{"write", {folder / "a.pcap"}}});
  ASSERT_TRUE(port->open(1));
  ASSERT_TRUE(port->start());
  auto first = some_packets(3);
  auto second = some_packets(3, 1);
  EXPECT_EQ(testing::send(*port->tx(0), first), 3U);
  EXPECT_EQ(testing::send(*port->tx(0), second), 3U);
  const Errors errors = port->close();
  ASSERT_THAT(errors, SizeIs(1));
  EXPECT_THAT(to_string(errors), HasSubstr("timestamps of 2 packets"));
}

TEST(Pcap, ReportsTimesThatDoNotFitTheClassicFormat) {
  const TemporaryFolder folder;
  const std::vector<Captured> packets{{(std::uint64_t{1} << 32) * kSecond, 1, LinkType::ethernet, {1}}};
  EXPECT_THAT(to_string(write_capture(folder / "a.pcap", packets).errors),
              HasSubstr("timestamps of 1 packet are wrong"));
  EXPECT_THAT(write_capture(folder / "a.pcapng", packets).errors, IsEmpty());
  EXPECT_THAT(read_captures({folder / "a.pcapng"}).packets, ElementsAreArray(packets));
}

TEST(Pcap, WritesTheRecordsOfAMicrosecondCaptureByteForByte) {
  const TemporaryFolder folder;
  CaptureBytes capture;
  capture.pcap_header(1, 0xa1b2c3d4, 262144);
  capture.pcap_record(1'700'000'000, 999'999, 5, 1514).raw({1, 2, 3, 4, 5});
  capture.pcap_record(1'600'000'000, 0, 0, 0);
  capture.pcap_record(4'294'967'295, 1, 3, 3).raw({7, 8, 9});
  write_file(folder / "in.pcap", capture.bytes());
  write_capture(folder / "out.pcap", read_captures({folder / "in.pcap"}).packets);
  EXPECT_EQ(read_file(folder / "out.pcap"), capture.bytes());
}

TEST(Pcap, WritesAPcapngSectionInterfaceAndPacketAsSpecified) {
  const TemporaryFolder folder;
  write_capture(folder / "a.pcapng", {{7'123'456'789, 60, LinkType::raw_ip, {1, 2, 3, 4, 5}}});
  EXPECT_EQ(read_file(folder / "a.pcapng"),
            CaptureBytes().section().interface(101, 9, 262144).packet(0, 7'123'456'789, {1, 2, 3, 4, 5}, 60).bytes());
}

TEST(Pcap, WritesAValidEmptyCaptureIfNothingIsSent) {
  const TemporaryFolder folder;
  for (const char* name : {"a.pcap", "a.pcapng", "a.pcap.gz", "a.pcap.zst"}) {
    EXPECT_THAT(write_capture(folder / name, {}).errors, IsEmpty());
    const auto read = read_captures({folder / name});
    EXPECT_THAT(read.errors, IsEmpty()) << to_string(read.errors);
    EXPECT_THAT(read.packets, IsEmpty());
  }
}

TEST(Pcap, RefusesAndReportsASecondLinkTypeInAClassicCapture) {
  const TemporaryFolder folder;
  auto packets = some_packets(4);
  packets[0].link_type = packets[3].link_type = LinkType::linux_sll2;
  const Written written = write_capture(folder / "a.pcap", packets);
  EXPECT_EQ(written.taken, 2U);
  EXPECT_THAT(to_string(written.errors), HasSubstr("2 packets left out"));
  EXPECT_THAT(to_string(written.errors), HasSubstr("Linux cooked v2"));
  EXPECT_THAT(read_captures({folder / "a.pcap"}).packets, ElementsAre(packets[0], packets[3]));
}

TEST(Pcap, WritesSeveralLinkTypesToPcapngAsInterfaces) {
  const TemporaryFolder folder;
  const Bytes frame{1, 2, 3, 4};
  const std::vector<Captured> packets{
      {1, 4, LinkType::ethernet, frame}, {2, 4, LinkType::raw_ip, frame}, {3, 4, LinkType::ethernet, frame}};
  const Written written = write_capture(folder / "a.pcapng", packets);
  EXPECT_EQ(written.taken, 3U);
  EXPECT_THAT(written.errors, IsEmpty());
  EXPECT_EQ(read_file(folder / "a.pcapng"), CaptureBytes()
                                                .section()
                                                .interface(1, 9, 262144)
                                                .interface(101, 9, 262144)
                                                .packet(0, 1, frame, 4)
                                                .packet(1, 2, frame, 4)
                                                .packet(0, 3, frame, 4)
                                                .bytes());
  EXPECT_THAT(read_captures({folder / "a.pcapng"}).packets, ElementsAreArray(packets));
}

TEST(Pcap, ReportsAFullDiskAndCountsBufferedPacketsAsLost) {
  for (const char* precision : {"us", "ns"}) {
    auto port = must_make("pcap", {{"write", {"/dev/full"}}, {"precision", {precision}}});
    ASSERT_TRUE(port->open(1));
    ASSERT_TRUE(port->start());
    auto packets = some_packets(10);
    EXPECT_FALSE(port->failed());
    Lost lost;
    EXPECT_EQ(testing::send(*port->tx(0), packets, &lost), 10U);
    EXPECT_EQ(lost.packets, 10U);
    EXPECT_EQ(lost.bytes, bytes_of(packets));
    EXPECT_TRUE(port->failed());
    EXPECT_EQ(testing::send(*port->tx(0), packets, &lost), 0U);
    EXPECT_EQ(lost.packets, 0U) << "what is refused is not lost once more";
    EXPECT_THAT(to_string(port->close()), HasSubstr("No space left"));
  }
}

TEST(Pcap, DoesNotCountWrittenPacketsAsLostOnAFullDisk) {
  const TemporaryFolder folder;
  auto packets = some_packets(5000);  // 4 MB: several buffers in one send
  for (const char* name : {"a.pcap", "a.pcapng"}) {
    auto port = must_make("pcap", {{"write", {folder / name}}});
    ASSERT_TRUE(port->open(1));
    ASSERT_TRUE(port->start());
    Lost lost;
    {
      const FileSizeLimit limit(1'500'000);
      EXPECT_EQ(testing::send(*port->tx(0), packets, &lost), packets.size());
    }
    EXPECT_THAT(to_string(port->close()), HasSubstr("File too large"));
    const auto held = read_captures({folder / name}).packets;
    EXPECT_GT(held.size(), 1000U);
    EXPECT_EQ(held.size() + lost.packets, packets.size()) << name;
    EXPECT_EQ(bytes_of(held) + lost.bytes, bytes_of(packets)) << name;
  }
}

TEST(Pcap, CountsPacketsThatACompressorHasNotWrittenAsLost) {
  for (const char* name : {"full.gz", "full.zst"}) {
    const TemporaryFolder folder;
    ASSERT_EQ(::symlink("/dev/full", (folder / name).c_str()), 0);
    auto port = must_make("pcap", {{"write", {folder / name}}});
    ASSERT_TRUE(port->open(1));
    ASSERT_TRUE(port->start());
    std::mt19937 random(1);
    auto packets = some_packets(5000);
    for (Captured& packet : packets) {
      for (std::uint8_t& byte : packet.bytes) byte = static_cast<std::uint8_t>(random());
    }
    Lost lost;
    EXPECT_EQ(testing::send(*port->tx(0), packets, &lost), packets.size());
    EXPECT_EQ(lost.packets, packets.size()) << name;
    EXPECT_THAT(to_string(port->close()), HasSubstr("No space left"));
  }
}

TEST(Pcap, BuffersAtMostOneBlockWhenItCompresses) {
  const TemporaryFolder folder;
  for (const char* name : {"a.pcap.gz", "a.pcapng.zst"}) {
    auto port = must_make("pcap", {{"write", {folder / name}}});
    ASSERT_TRUE(port->open(1));
    ASSERT_TRUE(port->start());
    // Zeros compress so well that a compressor would buffer all of them.
    std::vector<Captured> one{{kSecond, 250'000, LinkType::ethernet, Bytes(250'000)}};
    for (int i = 0; i < 40; ++i) testing::send(*port->tx(0), one);
    // A block ends with the packet that reaches 1 MiB: five packets each.
    EXPECT_THAT(read_captures({folder / name}).packets, SizeIs(40)) << name;
    testing::send(*port->tx(0), one);
    EXPECT_GE(read_captures({folder / name}).packets.size(), 40U) << name;
    EXPECT_THAT(port->close(), IsEmpty());
    EXPECT_THAT(read_captures({folder / name}).packets, SizeIs(41)) << name;
  }
}

TEST(Pcap, LeavesTheOutputAloneUntilTheRunStarts) {
  const TemporaryFolder folder;
  write_capture(folder / "out.pcap", some_packets(10));
  for (const char* name : {"out.pcap", "new.pcap"}) {
    auto port = must_make("pcap", {{"write", {folder / name}}});
    ASSERT_TRUE(port->open(1));
    EXPECT_THAT(port->close(), IsEmpty());
  }
  EXPECT_THAT(read_captures({folder / "out.pcap"}).packets, SizeIs(10));
  EXPECT_FALSE(std::filesystem::exists(folder / "new.pcap")) << "nobody asked for an empty file";
  write_capture(folder / "out.pcap", some_packets(3));
  EXPECT_THAT(read_captures({folder / "out.pcap"}).packets, SizeIs(3));
}

TEST(Pcap, LeavesTheOutputAloneIfTheInputCannotBeRead) {
  const TemporaryFolder folder;
  write_capture(folder / "out.pcap", some_packets(10));
  auto port = must_make("pcap", {{"read", {folder / "none"}}, {"write", {folder / "out.pcap"}}});
  EXPECT_FALSE(port->open(1));
  EXPECT_THAT(read_captures({folder / "out.pcap"}).packets, SizeIs(10));
}

TEST(Pcap, ChecksItsFilesWithoutCreatingThemOrBlocking) {
  const TemporaryFolder folder;
  write_capture(folder / "in.pcap", some_packets(3));
  write_file(folder / "text", {'n', 'o', 'n', 'e', '!', '\n'});
  write_file(folder / "usb.pcap", CaptureBytes().pcap_header(186).bytes());
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const auto check = [&](std::vector<std::string> read, const std::string& write) {
    return to_string(must_make("pcap", {{"read", std::move(read)}, {"write", {write}}})->check());
  };
  EXPECT_EQ(check({folder / "in.pcap", folder / "pipe", "-"}, folder / "out.pcap"), "");
  EXPECT_EQ(check({folder / "in.pcap"}, folder / "pipe"), "");
  EXPECT_EQ(check({folder / "in.pcap"}, "-"), "");
  EXPECT_FALSE(std::filesystem::exists(folder / "out.pcap"));
  const std::string errors =
      check({folder / "none", folder / "text", folder / "usb.pcap", folder / ""}, folder / "no/folder/out.pcap");
  EXPECT_THAT(errors, HasSubstr("none: cannot open"));
  EXPECT_THAT(errors, HasSubstr("text: not a readable capture"));
  EXPECT_THAT(errors, HasSubstr("usb.pcap: link type not supported"));
  EXPECT_THAT(errors, HasSubstr("Is a directory"));
  EXPECT_THAT(errors, HasSubstr("no/folder/out.pcap: cannot write: No such file or directory"));
  EXPECT_THAT(check({folder / "in.pcap"}, folder / "in.pcap/out"), HasSubstr("Not a directory"));
}

TEST(Pcap, RefusesACompressionSuffixThatItDoesNotWrite) {
  const TemporaryFolder folder;
  write_capture(folder / "in.pcap", some_packets(3));
  const std::string out = folder / "out.pcap.bz2";
  const auto port = must_make("pcap", {{"read", std::vector<std::string>{folder / "in.pcap"}}, {"write", {out}}});
  const std::string refusal =
      out + ": this compression is not supported: found '.bz2', expected .gz, .zst, or a name without it";
  EXPECT_EQ(to_string(port->check()), refusal);
  const auto sink = ByteSink::open(out);
  ASSERT_FALSE(sink);
  EXPECT_EQ(to_string(sink.error()), refusal);
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(Pcap, NeedsSomethingToReadOrToWrite) {
  EXPECT_THAT(to_string(make_port("pcap", {}).error()), HasSubstr("nothing to do"));
}

TEST(Pcap, FillsSmallBatchesWithoutLosingAPacket) {
  const TemporaryFolder folder;
  const auto packets = some_packets(300);
  write_capture(folder / "a.pcap", packets);
  for (const unsigned workers : {1U, 3U}) {
    auto port = must_make("pcap", {{"read", {folder / "a.pcap"}}}, 7);
    ASSERT_TRUE(port->open(workers));
    const auto got = drain(*port, workers, OwnBatch(1700, 3, {10, 20}));
    EXPECT_THAT(got.front(), ElementsAreArray(packets));  // no packet is IP, so all go to the first worker
    EXPECT_THAT(port->close(), IsEmpty());
    EXPECT_EQ(port->progress(), 1.0);
  }
}

TEST(Pcap, EndsWithAnErrorIfAFrameDoesNotFitInABatch) {
  const TemporaryFolder folder;
  auto packets = packets_of_flows(50, 2);
  packets[60].bytes.resize(5000);
  packets[60].wire_length = 5000;
  write_capture(folder / "a.pcap", packets);
  for (const unsigned workers : {1U, 4U}) {
    auto port = must_make("pcap", {{"read", {folder / "a.pcap"}}});
    ASSERT_TRUE(port->open(workers));
    std::size_t got = 0;
    for (const auto& of_worker : drain(*port, workers, OwnBatch(1700, 3))) got += of_worker.size();
    EXPECT_GE(got, workers == 1 ? 60U : 1U);
    EXPECT_LT(got, packets.size());
    EXPECT_THAT(to_string(port->close()), HasSubstr("5000 bytes"));
  }
}

TEST(Pcap, NamesTheCaptureOfAFrameThatDoesNotFitInABatch) {
  const TemporaryFolder folder;
  auto packets = packets_of_flows(50, 2);
  write_capture(folder / "a.pcap", packets);
  write_capture(folder / "c.pcap", packets);
  packets[10].bytes.resize(5000);
  packets[10].wire_length = 5000;
  write_capture(folder / "b.pcap", packets);
  for (const unsigned workers : {1U, 4U}) {
    auto port = must_make("pcap", {{"read", {folder / "a.pcap", folder / "b.pcap", folder / "c.pcap"}}});
    ASSERT_TRUE(port->open(workers));
    drain(*port, workers, OwnBatch(1700, 3));
    EXPECT_EQ(to_string(port->close()),
              folder / "b.pcap" +
                  ": reading ended at packet 11: the frame does not fit in a batch: found 5000 bytes, "
                  "expected larger batches (run: batch: bytes)");
  }
}

TEST(Pcap, EndsForAllWorkersIfAFrameDoesNotFitInABatch) {
  const TemporaryFolder folder;
  auto packets = packets_of_flows(200, 20);
  packets[0].bytes.resize(5000);
  write_capture(folder / "a.pcap", packets);
  // The worker that gets the long frame stops reading, while far more frames than its ring can hold follow.
  auto port = must_make("pcap", {{"read", std::vector<std::string>(200, folder / "a.pcap")}});
  ASSERT_TRUE(port->open(4));
  drain(*port, 4, OwnBatch(1700, 3));
  EXPECT_THAT(to_string(port->close()), HasSubstr("5000 bytes"));
}

TEST(Pcap, DeliversBothDirectionsOfAFlowToOneWorkerInOrder) {
  const TemporaryFolder folder;
  const auto packets = packets_of_flows(100, 60);
  write_capture(folder / "a.pcap", packets);
  auto port = must_make("pcap", {{"read", {folder / "a.pcap"}}});
  ASSERT_TRUE(port->open(4));
  const auto got = drain(*port, 4);
  EXPECT_THAT(port->close(), IsEmpty());
  std::map<std::uint16_t, std::size_t> worker_of_flow;
  std::map<std::uint16_t, unsigned> next_of_flow;
  std::size_t total = 0;
  for (std::size_t worker = 0; worker < got.size(); ++worker) {
    EXPECT_GT(got[worker].size(), 600U) << "worker " << worker << " has next to nothing";
    total += got[worker].size();
    for (const Captured& packet : got[worker]) {
      const auto port_at = [&](std::size_t at) {
        return static_cast<std::uint16_t>(packet.bytes[at] << 8 | packet.bytes[at + 1]);
      };
      const std::uint16_t flow = std::max(port_at(34), port_at(36));
      EXPECT_EQ(worker_of_flow.try_emplace(flow, worker).first->second, worker);
      EXPECT_EQ(packet.bytes[42], next_of_flow[flow]++);
    }
  }
  EXPECT_EQ(total, packets.size());
}

/*  F2 F1 of one datagram, F2 of others whose F1 never arrives, … the end  */
TEST(Pcap, DeliversWaitingFragmentsAtTheEndOfItsCaptures) {
  const TemporaryFolder folder;
  std::vector<Captured> packets;
  for (std::uint16_t id = 1; id <= 50; ++id) {
    const auto parts = penstock::testing::fragments_of(
        penstock::testing::packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(id, 53).payload("12345678 rest").bytes(),
        {8}, id);
    const bool whole = id == 1;
    for (const Bytes& frame : whole ? std::vector<Bytes>{parts[1], parts[0]} : std::vector<Bytes>{parts[1]}) {
      packets.push_back(
          {kSecond + packets.size(), static_cast<std::uint32_t>(frame.size()), LinkType::ethernet, frame});
    }
  }
  write_capture(folder / "a.pcapng", packets);
  for (const char* kind : {"pcap", "memory"}) {
    auto port = must_make(kind, {{"read", {folder / "a.pcapng"}}});
    ASSERT_TRUE(port->open(4));
    std::vector<Captured> got;
    for (const auto& of_worker : drain(*port, 4)) got.insert(got.end(), of_worker.begin(), of_worker.end());
    EXPECT_THAT(got, ::testing::UnorderedElementsAreArray(packets)) << kind;
    const auto counts = port->fragments();
    ASSERT_TRUE(counts);
    EXPECT_EQ(counts->packets, 51U);
    EXPECT_EQ(counts->not_followed, 49U) << "all but those of the datagram that is whole";
    EXPECT_THAT(port->close(), IsEmpty());
    EXPECT_EQ(must_make(kind, {{"read", {folder / "a.pcapng"}}})->fragments(), std::nullopt);
  }
}

TEST(Pcap, NumbersFramesAcrossCapturesAndWorkers) {
  const TemporaryFolder folder;
  write_capture(folder / "a.pcap", packets_of_flows(20, 10));
  write_capture(folder / "b.pcap", packets_of_flows(20, 5));
  for (const unsigned workers : {1U, 3U}) {
    auto port = must_make("pcap", {{"read", {folder / "a.pcap", folder / "b.pcap"}}});
    ASSERT_TRUE(port->open(workers));
    std::vector<std::uint32_t> numbers;
    for (unsigned worker = 0; worker < workers; ++worker) {
      OwnBatch batch;
      std::uint32_t last = 0;
      for (RxStatus status = RxStatus::idle; status != RxStatus::end;) {
        batch->reset(0);
        status = port->rx(worker)->poll(*batch);
        if (status == RxStatus::copy) continue;
        for (const PacketDescriptor& packet : batch->packets()) {
          EXPECT_GT(packet.number, last) << "of worker " << worker;
          numbers.push_back(last = packet.number);
        }
      }
    }
    EXPECT_THAT(port->close(), IsEmpty());
    std::ranges::sort(numbers);
    std::vector<std::uint32_t> all(300);
    std::iota(all.begin(), all.end(), 1U);
    EXPECT_EQ(numbers, all) << workers << " workers";
  }
}

TEST(Pcap, StopsPromptlyWhileTheFeederWaits) {
  const TemporaryFolder folder;
  write_capture(folder / "a.pcap", packets_of_flows(100, 200));
  std::vector<std::string> paths(200, folder / "a.pcap");  // far more than fits in the rings
  auto port = must_make("pcap", {{"read", paths}});
  ASSERT_TRUE(port->open(2));
  OwnBatch batch;
  port->rx(0)->poll(*batch);
  EXPECT_THAT(port->close(), IsEmpty());
}

TEST(Pcap, PollNeverBlocksOnAPipe) {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Bytes head = CaptureBytes().pcap_header().pcap_record(1, 0, 3, 3).raw({1, 2, 3}).bytes();
  const int fd = ::open(pipe.c_str(), O_RDWR);  // both ends, so that open() below finds a writer
  ASSERT_EQ(::write(fd, head.data(), head.size()), static_cast<ssize_t>(head.size()));
  auto port = must_make("pcap", {{"read", {pipe}}});
  ASSERT_TRUE(port->open(1));
  OwnBatch batch;
  while (batch->empty()) EXPECT_EQ(port->rx(0)->poll(*batch), RxStatus::idle);
  EXPECT_EQ(port->rx(0)->poll(*batch), RxStatus::idle);
  EXPECT_EQ(port->progress(), std::nullopt);
  EXPECT_THAT(port->close(), IsEmpty());  // while the feeder is blocked on the pipe
  ::close(fd);
}

TEST(Pcap, HasArrivalTimesForPipesButNotForFiles) {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Bytes head = CaptureBytes().pcap_header().bytes();
  const int fd = ::open(pipe.c_str(), O_RDWR);
  ASSERT_EQ(::write(fd, head.data(), head.size()), static_cast<ssize_t>(head.size()));
  auto live = must_make("pcap", {{"read", {pipe}}});
  ASSERT_TRUE(live->open(1));
  const auto to_clock = live->rx(0)->arrivals_to_clock();
  ASSERT_TRUE(to_clock);
  const auto now = std::chrono::system_clock::now().time_since_epoch() + *to_clock;
  EXPECT_LT(std::chrono::abs(now - Batch::Clock::now().time_since_epoch()), std::chrono::minutes{1});
  EXPECT_THAT(live->close(), IsEmpty());
  ::close(fd);

  write_capture(folder / "a.pcap", some_packets(1));
  for (const unsigned workers : {1U, 3U}) {
    auto recorded = must_make("pcap", {{"read", {folder / "a.pcap"}}});
    ASSERT_TRUE(recorded->open(workers));
    EXPECT_EQ(recorded->rx(0)->arrivals_to_clock(), std::nullopt);
    EXPECT_THAT(recorded->close(), IsEmpty());
  }
}

TEST(Pcap, WaitsForTheOtherEndOfAPipeUntilItIsInterrupted) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const char* parameter : {"read", "write"}) {
    auto port = must_make("pcap", {{parameter, {folder / "pipe"}}});
    auto opening = std::async(std::launch::async, [&] { return port->open(1); });
    EXPECT_EQ(opening.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout) << parameter;
    port->interrupt();
    const auto opened = opening.get();
    ASSERT_FALSE(opened);
    EXPECT_THAT(to_string(opened.error()), HasSubstr("stopped before the")) << parameter;
    EXPECT_THAT(port->close(), IsEmpty());
  }
}

TEST(Pcap, WritesToAPipeOnceItHasAReader) {
  const TemporaryFolder folder;
  const auto packets = some_packets(500);  // far more than fits in a pipe
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  auto reading = std::async(std::launch::async, [&] { return read_captures({folder / "pipe"}); });
  EXPECT_THAT(write_capture(folder / "pipe", packets).errors, IsEmpty());
  EXPECT_THAT(reading.get().packets, ElementsAreArray(packets));
}

TEST(Pcap, ReportsNoDamageIfStoppedInsideAPacket) {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Bytes cut = CaptureBytes().pcap_header().pcap_record(1, 0, 3, 3).raw({1, 2, 3}).pcap_record(2, 0, 9, 9).bytes();
  const int fd = ::open(pipe.c_str(), O_RDWR);
  ASSERT_EQ(::write(fd, cut.data(), cut.size()), static_cast<ssize_t>(cut.size()));
  auto port = must_make("pcap", {{"read", {pipe}}});
  ASSERT_TRUE(port->open(1));
  OwnBatch batch;
  while (batch->empty()) EXPECT_EQ(port->rx(0)->poll(*batch), RxStatus::idle);
  EXPECT_THAT(port->close(), IsEmpty());
  ::close(fd);
}

/// Temporarily replaces the standard input or output with a file.
class Redirected {
 public:
  Redirected(int fd, const std::string& path, int flags) : fd_(fd), before_(::dup(fd)) {
    const int file = ::open(path.c_str(), flags, 0600);
    ::dup2(file, fd_);
    ::close(file);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;
  ~Redirected() {
    ::dup2(before_, fd_);
    ::close(before_);
  }

 private:
  int fd_, before_;
};

TEST(Pcap, ReadsStandardInputAndWritesStandardOutput) {
  const TemporaryFolder folder;
  const auto packets = some_packets(100);
  std::fflush(stdout);
  {
    const Redirected output(STDOUT_FILENO, folder / "a.pcap", O_WRONLY | O_CREAT);
    write_capture("-", packets);
  }
  const Redirected input(STDIN_FILENO, folder / "a.pcap", O_RDONLY);
  EXPECT_THAT(read_captures({"-"}).packets, ElementsAreArray(packets));
}

TEST(Pcap, KeepsEachWorkersOrderInTheSharedFile) {
  const TemporaryFolder folder;
  for (const char* name : {"a.pcap", "a.pcapng.zst"}) {
    auto port = must_make("pcap", {{"write", {folder / name}}});
    constexpr unsigned kWorkers = 4;
    ASSERT_TRUE(port->open(kWorkers));
    ASSERT_TRUE(port->start());
    std::vector<std::thread> threads;
    for (unsigned worker = 0; worker < kWorkers; ++worker) {
      threads.emplace_back([&, worker] {
        for (std::uint32_t batch = 0; batch < 50; ++batch) {
          std::vector<Captured> packets;
          for (std::uint32_t i = 0; i < 40; ++i) {
            packets.push_back({kSecond, 1000, LinkType::ethernet, Bytes(100, static_cast<std::uint8_t>(worker))});
            const std::uint32_t number = batch * 40 + i;
            std::memcpy(packets.back().bytes.data() + 1, &number, sizeof number);
          }
          EXPECT_EQ(testing::send(*port->tx(worker), packets), 40U);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_THAT(port->close(), IsEmpty());
    const auto read = read_captures({folder / name});
    EXPECT_THAT(read.packets, SizeIs(kWorkers * 2000));
    std::array<std::uint32_t, kWorkers> next{};
    for (const Captured& packet : read.packets) {
      std::uint32_t number = 0;
      std::memcpy(&number, packet.bytes.data() + 1, sizeof number);
      EXPECT_EQ(number, next.at(packet.bytes[0])++);
    }
  }
}

}  // namespace
}  // namespace penstock::port
