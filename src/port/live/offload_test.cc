// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The oracle is separate, slow code: it builds frames byte by byte, parses every segment from its first byte, sums
// 16-bit words one by one, and joins the payloads again.

#include "port/live/offload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "port/live/testing/offload_oracle.h"

namespace penstock::port {
namespace {

using namespace offload_oracle;
using ::testing::Each;
using ::testing::SizeIs;

/// Frames are in memory of exactly their size, so that a sanitizer notices reading past their end.
std::vector<Bytes> split(const Bytes& frame, const VirtioHeader& header, std::size_t shift = 0) {
  const auto exact = std::make_unique<std::uint8_t[]>(frame.size());
  std::ranges::copy(frame, exact.get());
  const auto segmenter = Segmenter::of({exact.get(), frame.size()}, header, shift);
  std::vector<Bytes> segments;
  if (!segmenter) return segments;
  for (std::size_t i = 0; i < segmenter->count(); ++i) {
    constexpr std::uint8_t kGuard = 0xa5;
    Bytes segment(segmenter->length(i) + 16, kGuard);
    segmenter->write(i, segment.data());
    EXPECT_THAT(Bytes(segment.end() - 16, segment.end()), Each(kGuard)) << "written past the end";
    segment.resize(segmenter->length(i));
    segments.push_back(std::move(segment));
  }
  return segments;
}

/// Checks all segments of a frame against it, field by field.
void expect_split(const Frame& made) {
  SCOPED_TRACE(made.description());
  const std::vector<Bytes> segments = split(made.bytes, made.header);
  const Parsed whole = parse(made.bytes, made.shape);
  const std::size_t size = made.header.gso_size;
  ASSERT_THAT(segments, SizeIs((whole.payload.size() + size - 1) / size));
  Bytes joined;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    SCOPED_TRACE("segment " + std::to_string(i));
    const Parsed part = parse(segments[i], made.shape);
    ASSERT_EQ(part.error, "");
    ASSERT_TRUE(i + 1 == segments.size() ? part.payload.size() <= size : part.payload.size() == size);
    joined.insert(joined.end(), part.payload.begin(), part.payload.end());
    EXPECT_EQ(part.link, whole.link);
    EXPECT_EQ(part.addresses, whole.addresses);
    EXPECT_EQ(part.extensions, whole.extensions);
    EXPECT_EQ(part.ports, whole.ports);
    EXPECT_EQ(part.options, whole.options);
    ASSERT_EQ(part.ids.size(), whole.ids.size());
    for (std::size_t n = 0; n < part.ids.size(); ++n) EXPECT_EQ(part.ids[n], (whole.ids[n] + i) & 0xffff);
    if (!made.shape.tcp) continue;
    EXPECT_EQ(part.sequence, static_cast<std::uint32_t>(whole.sequence + i * size));
    EXPECT_EQ(part.acknowledgment, whole.acknowledgment);
    constexpr std::uint8_t kFin = 1, kPsh = 8, kCwr = 128;
    std::uint8_t flags = whole.flags;
    if (i + 1 < segments.size()) flags = static_cast<std::uint8_t>(flags & ~(kFin | kPsh));
    if (i > 0) flags = static_cast<std::uint8_t>(flags & ~kCwr);
    EXPECT_EQ(part.flags, flags);
  }
  EXPECT_EQ(joined, whole.payload);
}

Frame tcp4(std::size_t payload, std::uint16_t size) {
  Shape shape;
  shape.payload = payload;
  shape.gso_size = size;
  return make_frame(shape);
}

TEST(Offload, SplitsFramesOfEveryShape) {
  std::mt19937 random(20261);
  const auto below = [&](unsigned limit) { return random() % limit; };
  for (int round = 0; round < 3000; ++round) {
    Shape shape;
    shape.ipv4 = below(2) == 0;
    shape.tcp = below(3) != 0;
    shape.tags = below(3);
    shape.ip_options = shape.ipv4 ? below(11) * 4 : 0;
    shape.tcp_options = below(11) * 4;
    shape.extensions = shape.ipv4 ? 0 : below(4);
    shape.routing = !shape.ipv4 && below(4) == 0;
    shape.flags = static_cast<std::uint8_t>(random());
    shape.ecn = below(2) == 0;
    shape.tunnel = static_cast<Tunnel>(below(6));
    shape.outer_ipv4 = below(2) == 0;
    shape.tunnel_checksum = below(2) == 0;
    if (shape.tunnel != Tunnel::none) shape.extensions = shape.routing = 0;
    shape.payload = 1 + below(4000);
    shape.gso_size = static_cast<std::uint16_t>(1 + below(2000));
    shape.seed = static_cast<unsigned>(random());
    expect_split(make_frame(shape));
    if (HasFailure()) return;
  }
}

TEST(Offload, SplitsIntoSingleBytes) {
  expect_split(tcp4(300, 1));
  Shape udp;
  udp.tcp = false;
  udp.payload = 77;
  udp.gso_size = 1;
  expect_split(make_frame(udp));
}

TEST(Offload, MakesOneSegmentOfAFrameThatIsShortEnough) {
  expect_split(tcp4(1000, 1000));
  expect_split(tcp4(1, 65000));
}

TEST(Offload, SplitsTheLongestFrames) {
  expect_split(tcp4(65535 - 40, 1460));
  expect_split(tcp4(65535 - 40, 65535 - 40));
  expect_split(tcp4(500000, 9000));  // BIG TCP: the total length is 0
}

TEST(Offload, RemovesTheJumboPayloadOption) {
  Shape shape;
  shape.ipv4 = false;
  shape.jumbo = true;
  shape.payload = 150000;
  shape.gso_size = 1428;
  for (const std::size_t extensions : {0U, 2U}) {
    shape.extensions = extensions;
    for (const bool routing : {false, true}) {
      shape.routing = routing;
      expect_split(make_frame(shape));
    }
  }
}

TEST(Offload, RefusesSegmentsLongerThanAnIpPacket) {
  EXPECT_THAT(split(tcp4(65535 - 39, 65535 - 39).bytes, tcp4(65535 - 39, 65535 - 39).header), SizeIs(0));
}

TEST(Offload, FindsHeadersAfterAnInsertedTag) {
  Shape shape;
  shape.tags = 1;
  Frame frame = make_frame(shape);
  frame.header.checksum_start = static_cast<std::uint16_t>(frame.header.checksum_start - 4);
  EXPECT_FALSE(split(frame.bytes, frame.header, 4).empty());
  EXPECT_TRUE(split(frame.bytes, frame.header, 0).empty());
}

TEST(Offload, RefusesOtherKinds) {
  const Frame frame = tcp4(3000, 1000);
  const auto is_refused = [&](auto change) {
    VirtioHeader header = frame.header;
    change(header);
    return split(frame.bytes, header).empty();
  };
  EXPECT_FALSE(is_refused([](VirtioHeader&) {}));
  EXPECT_TRUE(is_refused([](VirtioHeader& h) { h.gso_size = 0; }));
  EXPECT_TRUE(is_refused([](VirtioHeader& h) { h.flags = 0; }));
  EXPECT_TRUE(is_refused([](VirtioHeader& h) { h.gso_type = VirtioHeader::kTcp6; }));
  EXPECT_TRUE(is_refused([](VirtioHeader& h) { h.gso_type = VirtioHeader::kUdp; }));
  EXPECT_TRUE(is_refused([](VirtioHeader& h) { h.gso_type = VirtioHeader::kEcn; }));
  EXPECT_TRUE(is_refused([](VirtioHeader& h) { h.gso_type = 3; }));  // UDP fragmentation
  EXPECT_TRUE(is_refused([](VirtioHeader& h) { h.checksum_start = 0; }));
  EXPECT_TRUE(is_refused([](VirtioHeader& h) { ++h.checksum_start; }));
  EXPECT_TRUE(is_refused([](VirtioHeader& h) { h.checksum_start = 65535; }));
}

TEST(Offload, RefusesEveryTruncation) {
  for (const bool ipv4 : {true, false}) {
    for (const Tunnel tunnel : kTunnels) {
      Shape shape;
      shape.ipv4 = ipv4;
      shape.tunnel = tunnel;
      shape.payload = 10;
      shape.gso_size = 3;
      const Frame frame = make_frame(shape);
      const std::size_t headers = frame.bytes.size() - shape.payload;
      for (std::size_t length = 0; length <= headers; ++length) {
        EXPECT_TRUE(
            split(Bytes(frame.bytes.begin(), frame.bytes.begin() + static_cast<std::ptrdiff_t>(length)), frame.header)
                .empty())
            << length;
      }
    }
  }
}

/// With a sanitizer, this is about memory; otherwise, only that segments are not longer than the frame.
TEST(Offload, SurvivesDamagedHeaders) {
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    Shape shape;
    shape.ipv4 = random() % 2 == 0;
    shape.tcp = random() % 2 == 0;
    shape.tunnel = static_cast<Tunnel>(random() % 6);
    shape.extensions = shape.ipv4 || shape.tunnel != Tunnel::none ? 0 : random() % 3;
    shape.payload = 1 + random() % 100;
    shape.gso_size = static_cast<std::uint16_t>(1 + random() % 50);
    Frame frame = make_frame(shape);
    const std::size_t headers = frame.bytes.size() - shape.payload;
    for (unsigned change = random() % 4; change > 0; --change)
      frame.bytes[12 + random() % (headers - 12)] = static_cast<std::uint8_t>(random());
    if (random() % 4 == 0) frame.header.checksum_start = static_cast<std::uint16_t>(random() % (headers + 20));
    for (const Bytes& segment : split(frame.bytes, frame.header)) ASSERT_LE(segment.size(), frame.bytes.size());
  }
}

TEST(Checksum, IsCompletedForEveryLengthAndPlace) {
  std::mt19937 random(3);
  for (std::size_t length = 2; length < 300; ++length) {
    for (const std::size_t start : {std::size_t{0}, length / 3, length - 2}) {
      Bytes frame(length);
      for (std::uint8_t& byte : frame) byte = static_cast<std::uint8_t>(random());
      VirtioHeader header;
      header.flags = VirtioHeader::kNeedsChecksum;
      header.checksum_start = static_cast<std::uint16_t>(start);
      constexpr std::uint16_t kTcp = 16, kUdp = 6, kIcmpv6 = 2;
      for (const std::uint16_t offset : {kTcp, kUdp, kIcmpv6}) {
        header.checksum_offset = offset;
        Bytes done = frame;
        const bool fits = start + offset + 2 <= length;
        ASSERT_EQ(complete_checksum(done, header, 0), fits);
        Bytes expected = frame;
        if (fits) put16(expected, start + offset, nonzero_if(offset == kUdp, naive_checksum(frame, start)));
        ASSERT_EQ(done, expected) << length << ' ' << start << ' ' << offset;
      }
    }
  }
}

TEST(Checksum, OfUdpIsNeverZero) {
  // The words sum up to 0xffff, so that their complement is 0.
  Bytes frame(28);
  put16(frame, 8, 0xfffe);
  put16(frame, 20, 0x0001);
  VirtioHeader header;
  header.checksum_offset = 6;
  ASSERT_TRUE(complete_checksum(frame, header, 0));
  EXPECT_EQ(get16(frame, 6), 0xffff);
}

TEST(Checksum, OfAFrameOfMoreThan64KiB) {
  Bytes frame(200001, 0xff);
  VirtioHeader header;
  header.checksum_start = 34;
  header.checksum_offset = 16;
  Bytes done = frame;
  ASSERT_TRUE(complete_checksum(done, header, 0));
  EXPECT_EQ(get16(done, 50), naive_checksum(frame, 34));
}

/// RFC 3720 appendix B.4: the CRC32c of 32 bytes of ones is 0x62a8ab43, of ascending bytes 0x46dd794e.
TEST(Checksum, OfSctpIsItsCrc) {
  Bytes frame(14 + 12 + 100);
  std::mt19937 random(5);
  for (std::uint8_t& byte : frame) byte = static_cast<std::uint8_t>(random());
  VirtioHeader header;
  header.checksum_start = 14;
  header.checksum_offset = 8;
  Bytes done = frame;
  ASSERT_TRUE(complete_checksum(done, header, 0));
  Bytes zeroed(frame.begin() + 14, frame.end());
  std::fill_n(zeroed.begin() + 8, 4, std::uint8_t{0});
  EXPECT_EQ(naive_crc32c(Bytes(32, 0xff)), 0x62a8ab43U);
  const std::uint32_t crc = naive_crc32c(zeroed);
  for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(done[14 + 8 + i], crc >> 8 * i & 0xff);
  done.resize(14 + 11);
  EXPECT_FALSE(complete_checksum(done, header, 0));
}

}  // namespace
}  // namespace penstock::port
