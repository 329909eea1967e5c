// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/capture_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <limits>

#include "port/testing/capture_bytes.h"
#include "port/testing/port_harness.h"

namespace penstock::port {
namespace {

using ::testing::AllOf;
using testing::Bytes;
using testing::CaptureBytes;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::read_captures;
using testing::ReadBack;
using ::testing::SizeIs;
using testing::TemporaryFolder;
using testing::write_file;

const Bytes kFrame{1, 2, 3, 4, 5, 6, 7};
constexpr std::uint64_t kSecond = 1'000'000'000;

ReadBack read_bytes(const Bytes& bytes, const std::string& name = "in.pcap") {
  const TemporaryFolder folder;
  write_file(folder / name, bytes);
  return read_captures({folder / name});
}

Bytes three_packets(bool big_endian = false) {
  CaptureBytes capture(big_endian);
  capture.pcap_header();
  for (std::uint32_t i = 0; i < 3; ++i) capture.pcap_record(100 + i, i, 7, 7 + i).raw(kFrame);
  return capture.bytes();
}

Bytes three_pcapng_packets() {
  CaptureBytes capture;
  capture.section().interface(1);
  for (std::uint32_t i = 0; i < 3; ++i) capture.packet(0, (100 + i) * 1'000'000ULL + i, kFrame, 7 + i);
  return capture.bytes();
}

Bytes gzipped(const Bytes& plain) {
  Bytes out(plain.size() + 1024);
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = const_cast<Bytef*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

Bytes zstandard(const Bytes& plain) {
  Bytes out(ZSTD_compressBound(plain.size()));
  out.resize(ZSTD_compress(out.data(), out.size(), plain.data(), plain.size(), 3));
  return out;
}

Bytes joined(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void expect_three(const ReadBack& read) {
  EXPECT_THAT(read.errors, IsEmpty()) << to_string(read.errors);
  ASSERT_THAT(read.packets, SizeIs(3));
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(read.packets[i], (testing::Captured{(100 + i) * kSecond + i * 1000, 7 + i, LinkType::ethernet, kFrame}));
  }
}

TEST(CaptureReader, ReadsBothByteOrders) {
  for (const bool big_endian : {false, true}) expect_three(read_bytes(three_packets(big_endian)));
}

TEST(CaptureReader, KeepsNanoseconds) {
  const auto read =
      read_bytes(CaptureBytes().pcap_header(1, 0xa1b23c4d).pcap_record(5, 123456789, 7, 7).raw(kFrame).bytes());
  ASSERT_THAT(read.packets, SizeIs(1));
  EXPECT_EQ(read.packets[0].timestamp_ns, 5 * kSecond + 123456789);
}

TEST(CaptureReader, ReadsPcapngInItsResolutions) {
  expect_three(read_bytes(three_pcapng_packets()));
  const auto nano = read_bytes(CaptureBytes().section().interface(1, 9).packet(0, 7'123'456'789, kFrame, 7).bytes());
  ASSERT_THAT(nano.packets, SizeIs(1));
  EXPECT_EQ(nano.packets[0].timestamp_ns, 7'123'456'789U);
  const auto milli = read_bytes(CaptureBytes().section().interface(1, 3).packet(0, 7'123, kFrame, 7).bytes());
  ASSERT_THAT(milli.packets, SizeIs(1));
  EXPECT_EQ(milli.packets[0].timestamp_ns, 7'123'000'000U);
}

TEST(CaptureReader, DetectsCompressionByItsFirstBytesWhateverTheName) {
  for (const Bytes& plain : {three_packets(), three_pcapng_packets()}) {
    for (const char* name : {"a.pcap", "a.gz", "a.zst"}) {
      expect_three(read_bytes(plain, name));
      expect_three(read_bytes(gzipped(plain), name));
      expect_three(read_bytes(zstandard(plain), name));
    }
  }
}

TEST(CaptureReader, ReadsConcatenatedCompressedStreamsAsOne) {
  const Bytes plain = three_packets();
  const Bytes head(plain.begin(), plain.begin() + 31);
  const Bytes tail(plain.begin() + 31, plain.end());
  expect_three(read_bytes(joined(gzipped(head), gzipped(tail))));
  expect_three(read_bytes(joined(joined(gzipped(head), gzipped({})), gzipped(tail))));
  expect_three(read_bytes(joined(gzipped(plain), Bytes(512, 0))));  // padding, as on a tape
  expect_three(read_bytes(joined(zstandard(head), zstandard(tail))));
  const Bytes skippable{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'};
  expect_three(read_bytes(joined(skippable, zstandard(plain))));
}

/// A capture truncated at any byte gives the packets before the cut, and an error unless the cut is between two
/// packets.
void expect_honest_at_every_cut(const Bytes& whole, std::size_t header, const std::vector<std::size_t>& ends) {
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    const auto read = read_bytes(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut)));
    std::size_t complete = 0;
    bool at_a_seam = cut == header;
    for (const std::size_t end : ends) {
      if (end <= cut) ++complete;
      if (end == cut) at_a_seam = true;
    }
    EXPECT_THAT(read.packets, SizeIs(complete)) << "cut at " << cut;
    EXPECT_EQ(read.errors.empty(), at_a_seam) << "cut at " << cut << ": " << to_string(read.errors);
  }
}

TEST(CaptureReader, ReadsAllPacketsOfATruncatedCapture) {
  expect_honest_at_every_cut(three_packets(), 24, {24 + 23, 24 + 46, 24 + 69});
  expect_honest_at_every_cut(three_pcapng_packets(), 60, {60 + 40, 60 + 80, 60 + 120});
}

TEST(CaptureReader, NamesTheFileAndThePacketWhereACaptureIsTruncated) {
  Bytes bytes = three_packets();
  bytes.pop_back();
  const auto read = read_bytes(bytes, "cut.pcap");
  ASSERT_THAT(read.errors, SizeIs(1));
  EXPECT_THAT(read.errors[0].place.file, HasSubstr("cut.pcap"));
  EXPECT_THAT(to_string(read.errors), HasSubstr("after packet 2"));
  EXPECT_THAT(to_string(read.errors), HasSubstr("truncated"));
}

TEST(CaptureReader, ReportsTruncatedOrCorruptCompressedData) {
  Bytes plain = CaptureBytes().pcap_header().bytes();
  std::uint32_t noise = 1;
  for (std::uint32_t i = 0; i < 200; ++i) {
    CaptureBytes record;
    record.pcap_record(i, i, 64, 64);
    for (int b = 0; b < 64; ++b) record.u8((noise = noise * 1664525 + 1013904223) >> 24);
    plain = joined(plain, record.bytes());
  }
  for (const Bytes& whole : {gzipped(plain), zstandard(plain)}) {
    ASSERT_THAT(read_bytes(whole).packets, SizeIs(200));
    for (std::size_t cut = 5; cut < whole.size(); cut += 97) {
      const auto read = read_bytes(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut)));
      EXPECT_LE(read.packets.size(), 200U);
      EXPECT_THAT(read.errors, SizeIs(1)) << "cut at " << cut;
      Bytes corrupt = whole;
      corrupt[cut] ^= 0x55;
      read_bytes(corrupt);  // an error or other packets, depending on the byte; never a crash
    }
    Bytes trailing = joined(whole, Bytes{'j', 'u', 'n', 'k', '!', '!'});
    const auto read = read_bytes(trailing);
    EXPECT_THAT(read.packets, SizeIs(200));
    EXPECT_THAT(read.errors, SizeIs(1));
  }
  Bytes no_end = gzipped(plain);
  no_end.resize(no_end.size() - 8);  // all packets are complete, but the checksum is missing
  const auto read = read_bytes(no_end);
  EXPECT_THAT(read.packets, SizeIs(200));
  EXPECT_THAT(to_string(read.errors), HasSubstr("is truncated"));
}

TEST(CaptureReader, RefusesFilesThatAreNotCaptures) {
  EXPECT_THAT(to_string(read_bytes({}).errors), HasSubstr("the file is empty: expected a capture"));
  EXPECT_THAT(to_string(read_bytes({'h', 'e', 'l', 'l', 'o'}).errors), HasSubstr("unknown file format"));
  EXPECT_THAT(to_string(read_captures({"/nonexistent.pcap"}).errors), HasSubstr("No such file"));
  EXPECT_THAT(to_string(read_captures({"/"}).errors), HasSubstr("Is a directory"));
}

TEST(CaptureReader, NamesAnUnsupportedLinkType) {
  const auto read = read_bytes(CaptureBytes().pcap_header(105).bytes(), "wlan.pcap");
  ASSERT_THAT(read.errors, SizeIs(1));
  EXPECT_THAT(to_string(read.errors), HasSubstr("wlan.pcap"));
  EXPECT_THAT(to_string(read.errors), HasSubstr("IEEE802_11 (105)"));
  EXPECT_THAT(to_string(read.errors), HasSubstr("EN10MB, RAW"));
}

TEST(CaptureReader, AcceptsEveryLinkTypeThatCarriesIp) {
  const std::vector<std::pair<std::uint32_t, LinkType>> types{
      {0, LinkType::null_host}, {1, LinkType::ethernet},     {9, LinkType::ppp},         {50, LinkType::ppp},
      {101, LinkType::raw_ip},  {104, LinkType::cisco_hdlc}, {108, LinkType::loop},      {113, LinkType::linux_sll},
      {228, LinkType::raw_ip},  {229, LinkType::raw_ip},     {276, LinkType::linux_sll2}};
  for (const auto& [number, type] : types) {
    const auto read = read_bytes(CaptureBytes().pcap_header(number).pcap_record(1, 2, 7, 7).raw(kFrame).bytes());
    ASSERT_THAT(read.packets, SizeIs(1)) << number << ": " << to_string(read.errors);
    EXPECT_EQ(read.packets[0].link_type, type) << number;
  }
}

TEST(CaptureReader, NeverReturnsAWireLengthBelowTheCapturedLength) {
  const auto read = read_bytes(CaptureBytes()
                                   .pcap_header()
                                   .pcap_record(1, 2, 7, 1500)
                                   .raw(kFrame)
                                   .pcap_record(1, 2, 7, 3)
                                   .raw(kFrame)
                                   .pcap_record(1, 2, 0, 60)
                                   .pcap_record(1, 2, 0, 0)
                                   .bytes());
  ASSERT_THAT(read.packets, SizeIs(4));
  EXPECT_EQ(read.packets[0].wire_length, 1500U);
  EXPECT_EQ(read.packets[1].wire_length, 7U);
  EXPECT_EQ(read.packets[2].wire_length, 60U);
  EXPECT_THAT(read.packets[3].bytes, IsEmpty());
}

TEST(CaptureReader, EndsWithAnErrorAtAnAbsurdLength) {
  for (const std::uint32_t length : {262145U, 0x7fffffffU, 0xffffffffU}) {
    const auto read = read_bytes(
        CaptureBytes().pcap_header().pcap_record(1, 2, 7, 7).raw(kFrame).pcap_record(1, 2, length, 7).bytes());
    EXPECT_THAT(read.packets, SizeIs(1));
    EXPECT_THAT(read.errors, SizeIs(1));
  }
}

TEST(CaptureReader, NormalisesLargeFractionsOfASecondAndClampsTimes) {
  const auto carried = read_bytes(CaptureBytes().pcap_header().pcap_record(10, 1'500'000, 7, 7).raw(kFrame).bytes());
  ASSERT_THAT(carried.packets, SizeIs(1));
  EXPECT_EQ(carried.packets[0].timestamp_ns, 11 * kSecond + kSecond / 2);
  const auto far =
      read_bytes(CaptureBytes().section().interface(1, 0).packet(0, ~std::uint64_t{0} >> 2, kFrame, 7).bytes());
  ASSERT_THAT(far.packets, SizeIs(1));
  EXPECT_EQ(far.packets[0].timestamp_ns, std::numeric_limits<std::uint64_t>::max());
}

TEST(CaptureSequence, ReadsFilesInTheGivenOrderEachWithItsLinkType) {
  const TemporaryFolder folder;
  std::vector<std::string> paths;
  for (std::uint32_t i = 0; i < 300; ++i) {
    paths.push_back(folder / (std::to_string(i) + ".pcap"));
    write_file(paths.back(),
               CaptureBytes().pcap_header(i % 2 == 0 ? 1 : 101).pcap_record(1000 - i, 0, 7, 7).raw(kFrame).bytes());
  }
  const auto read = read_captures(paths);
  EXPECT_THAT(read.errors, IsEmpty());
  ASSERT_THAT(read.packets, SizeIs(300));
  for (std::uint32_t i = 0; i < 300; ++i) {
    EXPECT_EQ(read.packets[i].timestamp_ns, (1000 - i) * kSecond);
    EXPECT_EQ(read.packets[i].link_type, i % 2 == 0 ? LinkType::ethernet : LinkType::raw_ip);
  }
}

TEST(CaptureSequence, ReportsEveryBadFileAtOnce) {
  const TemporaryFolder folder;
  write_file(folder / "good.pcap", three_packets());
  write_file(folder / "bad.pcap", {1, 2, 3});
  write_file(folder / "wlan.pcap", CaptureBytes().pcap_header(105).bytes());
  const auto read = read_captures({folder / "bad.pcap", folder / "good.pcap", folder / "none", folder / "wlan.pcap"});
  EXPECT_THAT(read.packets, IsEmpty());
  EXPECT_THAT(read.errors, SizeIs(3));
}

TEST(CaptureSequence, SkipsBadCapturesOnRequest) {
  const TemporaryFolder folder;
  Bytes cut = three_packets();
  cut.pop_back();
  write_file(folder / "cut.pcap", cut);  // two packets, followed by an error
  write_file(folder / "good.pcap", three_packets());
  write_file(folder / "none.pcap", {1, 2, 3});  // not a capture
  ReadControl control;
  auto captures =
      CaptureSequence::open({folder / "none.pcap", folder / "cut.pcap", folder / "good.pcap", folder / "missing.pcap"},
                            control, BadCapture::skip);
  ASSERT_TRUE(captures) << to_string(captures.error());
  std::vector<std::uint64_t> numbers;
  for (CapturedFrame frame; captures->next(frame);) numbers.push_back(frame.number);
  EXPECT_THAT(numbers, ::testing::ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(to_string(captures->errors()), AllOf(HasSubstr("none.pcap: "), HasSubstr("missing.pcap: cannot open"),
                                                   HasSubstr("cut.pcap: the capture is broken after packet 2")));

  const auto none = CaptureSequence::open({folder / "none.pcap", folder / "missing.pcap"}, control, BadCapture::skip);
  ASSERT_FALSE(none) << "nothing can be read";
  EXPECT_THAT(none.error(), SizeIs(2));
}

TEST(CaptureSequence, ReadsNothingAfterADamagedFile) {
  const TemporaryFolder folder;
  Bytes cut = three_packets();
  cut.pop_back();
  write_file(folder / "cut.pcap", cut);
  write_file(folder / "good.pcap", three_packets());
  const auto read = read_captures({folder / "good.pcap", folder / "cut.pcap", folder / "good.pcap"});
  EXPECT_THAT(read.packets, SizeIs(5));
  EXPECT_THAT(read.errors, SizeIs(1));
}

}  // namespace
}  // namespace penstock::port
