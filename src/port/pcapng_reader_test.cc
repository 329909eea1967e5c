// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/pcapng_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <array>
#include <random>

#include "port/capture_reader.h"
#include "port/testing/capture_bytes.h"
#include "port/testing/port_harness.h"

namespace penstock::port {
namespace {

using testing::Bytes;
using testing::CaptureBytes;
using testing::Captured;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::read_captures;
using testing::ReadBack;
using ::testing::SizeIs;
using testing::TemporaryFolder;
using testing::write_file;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint32_t kWlan = 105;  // a link type that Penstock does not read
const Bytes kFrame{1, 2, 3, 4, 5, 6, 7};

ReadBack read_bytes(const Bytes& bytes) {
  const TemporaryFolder folder;
  write_file(folder / "in.pcapng", bytes);
  return read_captures({folder / "in.pcapng"});
}

Bytes joined(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<LinkType> types_of(const ReadBack& read) {
  std::vector<LinkType> types;
  for (const Captured& packet : read.packets) types.push_back(packet.link_type);
  return types;
}

//   | section | interface 0: Ethernet | interface 1: raw IP | interface 2: Linux cooked | packet of 1 | of 0 | of 2 |
TEST(PcapngReader, GivesEachFrameTheLinkTypeOfItsInterface) {
  const auto read = read_bytes(CaptureBytes()
                                   .section()
                                   .interface(1)
                                   .interface(101)
                                   .interface(113)
                                   .packet(1, 1, kFrame, 7)
                                   .packet(0, 2, kFrame, 7)
                                   .packet(2, 3, kFrame, 7)
                                   .bytes());
  EXPECT_THAT(read.errors, IsEmpty()) << to_string(read.errors);
  EXPECT_THAT(types_of(read), ElementsAre(LinkType::raw_ip, LinkType::ethernet, LinkType::linux_sll));
}

TEST(PcapngReader, ReadsInterfacesOfDifferentSnapshotLengths) {
  const auto read = read_bytes(CaptureBytes()
                                   .section()
                                   .interface(1, 6, 96)
                                   .interface(1, 6, 262144)
                                   .interface(1, 6, 0)
                                   .packet(0, 1, Bytes(96, 1), 1500)
                                   .packet(1, 2, Bytes(9000, 2), 9000)
                                   .packet(2, 3, Bytes(200, 3), 200)
                                   .bytes());
  EXPECT_THAT(read.errors, IsEmpty()) << to_string(read.errors);
  ASSERT_THAT(read.packets, SizeIs(3));
  EXPECT_EQ(read.packets[0].wire_length, 1500U);
  EXPECT_THAT(read.packets[1].bytes, SizeIs(9000));
}

TEST(PcapngReader, GivesEachFrameTheTimeOfItsInterfacesClock) {
  const auto read = read_bytes(CaptureBytes()
                                   .section()
                                   .interface(1, 3)          // milliseconds
                                   .interface(1, 9)          // nanoseconds
                                   .interface(1, 12)         // picoseconds
                                   .interface(1, 0x80 | 20)  // 2^-20 s
                                   .packet(0, 5'001, kFrame, 7)
                                   .packet(1, 5'000'000'001, kFrame, 7)
                                   .packet(2, 5'000'000'001'999, kFrame, 7)
                                   .packet(3, (5 << 20) + (1 << 19), kFrame, 7)
                                   .bytes());
  ASSERT_THAT(read.packets, SizeIs(4));
  EXPECT_EQ(read.packets[0].timestamp_ns, 5 * kSecond + 1'000'000);
  EXPECT_EQ(read.packets[1].timestamp_ns, 5 * kSecond + 1);
  EXPECT_EQ(read.packets[2].timestamp_ns, 5 * kSecond + 1);
  EXPECT_EQ(read.packets[3].timestamp_ns, 5 * kSecond + kSecond / 2);
}

//   little-endian: | section | Ethernet | packet |  then big-endian: | section | raw IP | packet |
TEST(PcapngReader, ReadsSectionsOfBothByteOrdersEachWithItsOwnInterfaces) {
  const Bytes first = CaptureBytes().section().interface(1).packet(0, 1, kFrame, 7).bytes();
  const Bytes second = CaptureBytes(true).section().interface(101).packet(0, 2, kFrame, 7).bytes();
  const auto read = read_bytes(joined(first, second));
  EXPECT_THAT(read.errors, IsEmpty()) << to_string(read.errors);
  EXPECT_THAT(types_of(read), ElementsAre(LinkType::ethernet, LinkType::raw_ip));
  const Bytes without = CaptureBytes().section().packet(0, 2, kFrame, 7).bytes();
  EXPECT_THAT(to_string(read_bytes(joined(first, without)).errors),
              HasSubstr("interface 0, which has no description block"));
}

TEST(PcapngReader, ReadsObsoleteAndSimplePacketsAndSkipsOtherBlocks) {
  CaptureBytes capture;
  capture.section().interface(1, 6, 5);
  capture.u32(0x0bad).u32(12 + 100'000).raw(Bytes(100'000, 7)).u32(12 + 100'000);  // a custom block
  capture.u32(3).u32(24).u32(7).raw({1, 2, 3, 4, 5, 0, 0, 0}).u32(24);             // cut to the snapshot length
  capture.u32(2).u32(40).u16(0).u16(9).u32(0).u32(8).u32(5).u32(60).raw({1, 2, 3, 4, 5, 0, 0, 0}).u32(40);
  const auto read = read_bytes(capture.bytes());
  EXPECT_THAT(read.errors, IsEmpty()) << to_string(read.errors);
  const Bytes cut{1, 2, 3, 4, 5};
  EXPECT_THAT(read.packets,
              ElementsAre(Captured{0, 7, LinkType::ethernet, cut}, Captured{8000, 60, LinkType::ethernet, cut}));
}

//   packets: Ethernet, WLAN, WLAN, Ethernet; the second Ethernet packet is the file's fourth
TEST(PcapngReader, SkipsAndCountsPacketsOfOtherLinkTypes) {
  const TemporaryFolder folder;
  const Bytes bytes = CaptureBytes()
                          .section()
                          .interface(kWlan)
                          .interface(1)
                          .packet(1, 1, kFrame, 7)
                          .packet(0, 2, kFrame, 7)
                          .packet(0, 3, kFrame, 7)
                          .packet(1, 4, kFrame, 7)
                          .bytes();
  for (const char* name : {"a.pcapng", "b.pcapng"}) write_file(folder / name, bytes);
  ReadControl control;
  auto captures = CaptureSequence::open({folder / "a.pcapng", folder / "b.pcapng"}, control);
  ASSERT_TRUE(captures) << to_string(captures.error());
  std::vector<std::uint64_t> numbers;
  for (CapturedFrame frame; captures->next(frame);) numbers.push_back(frame.number);
  EXPECT_THAT(numbers, ElementsAre(1U, 4U, 5U, 8U));
  ASSERT_THAT(captures->errors(), SizeIs(2));
  EXPECT_THAT(to_string(captures->errors()[0]), HasSubstr("a.pcapng: 2 packets left out"));
  EXPECT_THAT(to_string(captures->errors()[1]), HasSubstr("b.pcapng: 2 packets left out"));
  EXPECT_THAT(to_string(captures->errors()[1]), HasSubstr("IEEE802_11 (105)"));
}

TEST(PcapngReader, RefusesAFileWithoutASupportedInterface) {
  const auto read =
      read_bytes(CaptureBytes().section().interface(kWlan).interface(kWlan).packet(0, 2, kFrame, 7).bytes());
  EXPECT_THAT(read.packets, IsEmpty());
  EXPECT_THAT(to_string(read.errors), HasSubstr("link type not supported: found IEEE802_11 (105)"));
}

TEST(PcapngReader, RefusesTooManyInterfaces) {
  const Bytes interface = CaptureBytes().u32(1).u32(20).u16(1).u16(0).u32(0).u32(20).bytes();
  Bytes bytes = CaptureBytes().section().bytes();
  bytes.reserve(bytes.size() + (PcapngReader::kMostInterfaces + 1) * interface.size());
  for (std::size_t i = 0; i < PcapngReader::kMostInterfaces; ++i) {
    bytes.insert(bytes.end(), interface.begin(), interface.end());
  }
  EXPECT_THAT(read_bytes(bytes).errors, IsEmpty());
  EXPECT_THAT(to_string(read_bytes(joined(bytes, interface)).errors),
              HasSubstr("more than 1,048,576 interfaces in a section"));
}

TEST(PcapngReader, RefusesAPacketOrInterfaceBlockThatIsTooLarge) {
  const Bytes good = CaptureBytes().section().interface(1).packet(0, 1, kFrame, 7).bytes();
  for (const std::uint32_t type : {1U, 6U}) {
    const auto read = read_bytes(joined(good, CaptureBytes().u32(type).u32(1 << 30).raw(Bytes(1 << 20)).bytes()));
    EXPECT_THAT(read.packets, SizeIs(1));
    EXPECT_THAT(to_string(read.errors), HasSubstr("expected at most 512.0 KiB"));
  }
}

TEST(PcapngReader, SaysWhatIsWrongWithABlock) {
  const Bytes good = CaptureBytes().section().interface(1).packet(0, 1, kFrame, 7).bytes();
  const auto then = [&](const CaptureBytes& block) {
    return to_string(read_bytes(joined(good, block.bytes())).errors);
  };
  EXPECT_THAT(then(CaptureBytes().u32(6).u32(30).raw(Bytes(22))), HasSubstr("a block of 30 bytes"));
  EXPECT_THAT(then(CaptureBytes().u32(6).u32(8)), HasSubstr("a block of 8 bytes"));
  EXPECT_THAT(then(CaptureBytes().u32(5).u32(16).u32(0).u32(20)), HasSubstr("two lengths differ"));
  EXPECT_THAT(then(CaptureBytes().u32(6).u32(16).u32(0).u32(16)), HasSubstr("packet block that is too short"));
  EXPECT_THAT(then(CaptureBytes().packet(7, 1, kFrame, 7)), HasSubstr("interface 7, which has no description block"));
  EXPECT_THAT(then(CaptureBytes().u32(6).u32(32).u32(0).u32(0).u32(0).u32(4).u32(4).u32(32)),
              HasSubstr("longer than its block"));
  EXPECT_THAT(then(CaptureBytes().u32(6).u32(32).u32(0).u32(0).u32(0).u32(262145).u32(4).u32(32)),
              HasSubstr("a packet of 262145 bytes; expected at most 262144"));
  EXPECT_THAT(then(CaptureBytes().interface(1, 20)), HasSubstr("wrong time resolution"));
  EXPECT_THAT(then(CaptureBytes().interface(1, 0x80 | 64)), HasSubstr("wrong time resolution"));
  EXPECT_THAT(then(CaptureBytes().u32(1).u32(24).u16(1).u16(0).u32(0).u16(9).u16(5).u32(24)),
              HasSubstr("option that is longer than its block"));
  EXPECT_THAT(then(CaptureBytes().u32(0x0a0d0d0a).u32(28).u32(0x1a2b3c4d).u16(2).u16(0).u32(0).u32(0).u32(28)),
              HasSubstr("pcapng version 2.0"));
  EXPECT_THAT(then(CaptureBytes().u32(6).u32(64)), HasSubstr("truncated"));
}

std::uint32_t below(std::uint32_t bound, std::mt19937& random) { return static_cast<std::uint32_t>(random() % bound); }

/// Adds an interface with random options, possibly including a comment.
void add_interface(CaptureBytes& capture, std::mt19937& random) {
  const bool has_resolution = below(2, random) == 0;
  const bool has_offset = below(2, random) == 0;
  const bool has_comment = below(2, random) == 0;
  const std::uint32_t length = 20 + (has_comment ? 8 : 0) + (has_resolution ? 8 : 0) + (has_offset ? 12 : 0) + 4;
  capture.u32(1).u32(length).u16(1).u16(0).u32(65535);
  if (has_comment) capture.u16(1).u16(3).raw({'a', 'b', 'c', 0});
  // Binary resolutions only up to 2^-20, which libpcap can compute in 64 bits.
  if (has_resolution)
    capture.u16(9).u16(1).u8(below(2, random) == 0 ? below(12, random) : 0x80 | below(21, random)).raw({0, 0, 0});
  if (has_offset) capture.u16(14).u16(8).u64(below(1'000'000, random));
  capture.u16(0).u16(0).u32(length);
}

std::vector<Captured> read_by_libpcap(const std::string& path) {
  std::array<char, PCAP_ERRBUF_SIZE> reason{};
  pcap_t* capture = pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, reason.data());
  EXPECT_NE(capture, nullptr) << reason.data();
  std::vector<Captured> packets;
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  while (capture != nullptr && pcap_next_ex(capture, &header, &bytes) == 1) {
    packets.push_back(
        {static_cast<std::uint64_t>(header->ts.tv_sec) * kSecond + static_cast<std::uint64_t>(header->ts.tv_usec),
         std::max(header->len, header->caplen), LinkType::ethernet, Bytes(bytes, bytes + header->caplen)});
  }
  if (capture != nullptr) pcap_close(capture);
  return packets;
}

TEST(PcapngReader, AgreesWithLibpcapIfInterfacesAreAlike) {
  const TemporaryFolder folder;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    CaptureBytes capture(below(2, random) == 0);
    capture.section();
    const std::uint32_t interfaces = 1 + below(4, random);
    for (std::uint32_t i = 0; i < interfaces; ++i) add_interface(capture, random);
    for (std::uint32_t i = below(20, random); i > 0; --i) {
      if (below(4, random) == 0) capture.u32(4).u32(16).u32(0).u32(16);  // a name resolution block
      capture.packet(below(interfaces, random), random(), Bytes(below(100, random), 5), below(200, random));
    }
    write_file(folder / "in.pcapng", capture.bytes());
    const auto read = read_captures({folder / "in.pcapng"});
    EXPECT_THAT(read.errors, IsEmpty()) << "seed " << seed << ": " << to_string(read.errors);
    EXPECT_EQ(read.packets, read_by_libpcap(folder / "in.pcapng")) << "seed " << seed;
  }
}

}  // namespace
}  // namespace penstock::port
