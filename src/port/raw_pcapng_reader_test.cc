// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/raw_pcapng_reader.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "base/testing/rounds.h"
#include "port/testing/capture_bytes.h"
#include "port/testing/raw_reading.h"

namespace penstock::port {
namespace {

using Bytes = std::vector<std::uint8_t>;
using testing::CaptureBytes;
using testing::RawReading;

constexpr std::uint32_t kEthernet = 1, kRawIp = 101;
constexpr std::uint32_t kNames = 4, kStatistics = 5, kSecrets = 10, kCustom = 0xbad;
constexpr std::uint8_t kBinary = 0x80;

const Bytes kFrame{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};

/// The capture must read as libpcap reads it. Returns what we read.
RawReading expect_as_libpcap(const Bytes& capture) {
  const RawReading theirs = testing::read_by_libpcap(capture);
  RawReading ours = testing::read_by_us(capture);
  EXPECT_EQ(ours.opened, theirs.opened);
  EXPECT_EQ(ours.reason, theirs.reason);
  EXPECT_TRUE(ours.packets == theirs.packets) << ours.packets.size() << " bytes, not " << theirs.packets.size();
  return ours;
}

Bytes interface_body(std::uint32_t link_type, std::uint32_t snap_length, const Bytes& options) {
  return CaptureBytes().u16(link_type).u16(0).u32(snap_length).raw(options).bytes();
}

Bytes clock_options(std::uint8_t resolution, std::int64_t offset_seconds) {
  return CaptureBytes()
      .u16(9)
      .u16(1)
      .u32(resolution)
      .u16(14)
      .u16(8)
      .u64(static_cast<std::uint64_t>(offset_seconds))
      .u16(0)
      .u16(0)
      .bytes();
}

/// | length | packet |
Bytes simple_body(std::uint32_t wire_length, const Bytes& frame) {
  return CaptureBytes().u32(wire_length).raw(frame).bytes();
}

/// | interface | drops | time | captured length | length | packet |
Bytes obsolete_body(std::uint32_t interface, std::uint64_t time, std::uint32_t wire_length, const Bytes& frame) {
  return CaptureBytes()
      .u16(interface)
      .u16(7)
      .u32(static_cast<std::uint32_t>(time >> 32))
      .u32(static_cast<std::uint32_t>(time))
      .u32(static_cast<std::uint32_t>(frame.size()))
      .u32(wire_length)
      .raw(frame)
      .bytes();
}

/// Of each ordinary kind of block at least one.
CaptureBytes ordinary_capture() {
  CaptureBytes capture;
  capture.section().block(kSecrets, kFrame).interface(kEthernet, 9, 0);
  capture.packet(0, 1'700'000'000'123'456'789, kFrame, 60).block(kNames, kFrame).block(3, simple_body(17, kFrame));
  capture.block(1, interface_body(kEthernet, 0, clock_options(6, -3600)));
  capture.block(2, obsolete_body(1, 1'700'000'000'999'999, 99, kFrame)).block(kCustom, {});
  capture.packet(1, 5, {}, 0).block(kStatistics, kFrame).packet(1, 1'700'000'001'000'000, Bytes(70, 1), 70);
  return capture;
}

TEST(RawPcapngReader, ReadsOrdinaryCapturesInPlace) {
  const RawReading reading = expect_as_libpcap(ordinary_capture().bytes());
  EXPECT_EQ(reading.in_place, 5U);
  EXPECT_EQ(reading.reason, "");
}

TEST(RawPcapngReader, ConvertsTimesAsLibpcap) {
  const std::vector<std::uint64_t> times{0,
                                         1,
                                         999,
                                         1'000'000,
                                         1'699'999'999'999'999,
                                         1'700'000'000'000'000,
                                         1'700'000'000'123'456'789,
                                         1ULL << 32,
                                         (1ULL << 44) - 1,
                                         1ULL << 44,
                                         1ULL << 63,
                                         ~0ULL - 15,
                                         ~0ULL,
                                         14,
                                         15};
  for (unsigned resolution = 0; resolution < 256; ++resolution) {
    for (const std::int64_t offset : {INT64_C(0), INT64_C(86400), INT64_C(-1), INT64_MIN, INT64_MAX}) {
      SCOPED_TRACE(resolution);
      SCOPED_TRACE(offset);
      const Bytes options = clock_options(static_cast<std::uint8_t>(resolution), offset);
      CaptureBytes capture;
      capture.section().block(1, interface_body(kEthernet, 65535, options)).block(3, simple_body(17, kFrame));
      capture.interface(kEthernet, 6);
      for (const std::uint64_t time : times) capture.packet(0, time, kFrame, 17).packet(1, time, kFrame, 17);
      const RawReading reading = expect_as_libpcap(capture.bytes());
      const bool is_usual = resolution <= 19 || (resolution >= kBinary && resolution <= kBinary + 44);
      EXPECT_EQ(reading.in_place, is_usual ? 2 * times.size() + 1 : 0);
    }
  }
}

TEST(RawPcapngReader, ReadsCapturesThatAreCutAnywhere) {
  const Bytes capture = ordinary_capture().bytes();
  for (std::size_t size = 1; size < capture.size(); ++size) {
    SCOPED_TRACE(size);
    expect_as_libpcap(Bytes(capture.begin(), capture.begin() + static_cast<std::ptrdiff_t>(size)));
  }
}

TEST(RawPcapngReader, ReadsCapturesWithAnyWrongByte) {
  const Bytes capture = ordinary_capture().bytes();
  for (std::size_t at = 0; at < capture.size(); at += penstock::testing::stride()) {
    for (const unsigned change : {1U, 2U, 3U, 4U, 8U, 16U, 32U, 64U, 128U, 255U}) {
      Bytes damaged = capture;
      damaged[at] = static_cast<std::uint8_t>(damaged[at] ^ change);
      SCOPED_TRACE(at);
      SCOPED_TRACE(change);
      expect_as_libpcap(damaged);
      if (HasFailure()) return;
    }
  }
}

TEST(RawPcapngReader, LeavesOddInterfacesToLibpcap) {
  const Bytes usual = clock_options(6, 0);
  const std::vector<Bytes> bodies{
      interface_body(kRawIp, 65535, usual),
      interface_body(kEthernet, 65534, usual),
      interface_body(kEthernet, 0, usual),
      interface_body(kEthernet, 65535, {0, 0, 4, 0, 1, 2, 3, 4}),                          // the end has a length
      interface_body(kEthernet, 65535, {9, 0, 2, 0, 6, 6, 0, 0}),                          // a resolution of two bytes
      interface_body(kEthernet, 65535, {9, 0, 1, 0, 6, 0, 0, 0, 9, 0, 1, 0, 6, 0, 0, 0}),  // two resolutions
      interface_body(kEthernet, 65535, {14, 0, 4, 0, 1, 2, 3, 4}),                         // a short offset
      interface_body(kEthernet, 65535, {2, 0, 9, 0, 'e', 't', 'h', '0'}),                  // longer than the block
      {1, 0, 0, 0},
  };
  for (const Bytes& body : bodies) {
    CaptureBytes capture;
    capture.section().interface(kEthernet).packet(0, 1, kFrame, 17).packet(0, 2, kFrame, 17);
    capture.block(1, body).packet(0, 3, kFrame, 17).packet(1, 4, kFrame, 17);
    EXPECT_EQ(expect_as_libpcap(capture.bytes()).in_place, 2U);
    expect_as_libpcap(CaptureBytes().section().block(1, body).packet(0, 3, kFrame, 17).bytes());
  }
}

TEST(RawPcapngReader, AcceptsUnknownOptions) {
  const Bytes options{2, 0, 5, 0, 'e', 't', 'h', '0', '1', 0, 0, 0, 77, 0, 0, 0, 14, 0, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0};
  const auto body = interface_body(kEthernet, 65535, options);
  const auto capture = CaptureBytes().section().block(1, body).block(1, body).packet(1, 3, kFrame, 17);
  EXPECT_EQ(expect_as_libpcap(capture.bytes()).in_place, 1U);
}

TEST(RawPcapngReader, LeavesOddPacketsToLibpcap) {
  const Bytes long_frame(101, 7);
  const auto begin = [] { return CaptureBytes().section().interface(kEthernet, 6, 100).packet(0, 1, kFrame, 17); };
  const auto expect_one_in_place = [](const CaptureBytes& capture) {
    EXPECT_EQ(expect_as_libpcap(capture.bytes()).in_place, 1U);
  };
  expect_one_in_place(begin().packet(1, 1, kFrame, 17));       // no such interface
  expect_one_in_place(begin().packet(0, 1, long_frame, 101));  // longer than the snapshot length
  expect_one_in_place(begin().block(6, {0, 0, 0, 0}));         // too short
  expect_one_in_place(begin().block(2, {0, 0, 0, 0}));
  expect_one_in_place(begin().block(3, {}));
  expect_one_in_place(begin().block(3, simple_body(99, kFrame)));  // shorter than it says
  expect_one_in_place(begin().block(2, obsolete_body(3, 1, 17, kFrame)));
}

TEST(RawPcapngReader, TakesPaddingForDataAsLibpcap) {
  const auto capture = CaptureBytes().section().interface(kEthernet).block(3, simple_body(20, kFrame));
  EXPECT_EQ(expect_as_libpcap(capture.bytes()).in_place, 1U);
}

TEST(RawPcapngReader, CutsSimplePacketsToTheSnapshotLength) {
  CaptureBytes capture;
  capture.section().interface(kEthernet, 6, 16).block(3, simple_body(2000, kFrame)).block(3, simple_body(3, kFrame));
  EXPECT_EQ(expect_as_libpcap(capture.bytes()).in_place, 2U);
}

TEST(RawPcapngReader, LeavesOtherSectionsToLibpcap) {
  const Bytes first = ordinary_capture().bytes();
  const auto followed_by = [&](const CaptureBytes& rest) {
    return CaptureBytes().raw(first).raw(rest.bytes()).bytes();
  };
  EXPECT_EQ(expect_as_libpcap(followed_by(ordinary_capture())).in_place, 5U);
  EXPECT_EQ(expect_as_libpcap(followed_by(CaptureBytes().section().packet(0, 1, kFrame, 17))).in_place, 5U);
  const auto big_endian = CaptureBytes(true).section().interface(kEthernet).packet(0, 1, kFrame, 17);
  EXPECT_EQ(expect_as_libpcap(followed_by(big_endian)).in_place, 5U);
  EXPECT_EQ(expect_as_libpcap(big_endian.bytes()).in_place, 0U);
}

TEST(RawPcapngReader, ReadsAllLinkTypes) {
  for (std::uint32_t link_type = 0; link_type < 400; ++link_type) {
    SCOPED_TRACE(link_type);
    CaptureBytes capture;
    capture.section().interface(link_type, 6, 0).packet(0, 1, Bytes(80, 1), 400);
    capture.interface(link_type, 6, 0).packet(1, 1, kFrame, 17);
    expect_as_libpcap(capture.bytes());
  }
  const auto usb = CaptureBytes().section().interface(220).packet(0, 1, Bytes(64, 0), 64);
  EXPECT_EQ(expect_as_libpcap(usb.bytes()).in_place, 0U) << "libpcap changes lengths";
}

TEST(RawPcapngReader, ReadsLargeCapturesAcrossAllPieces) {
  std::mt19937 random(1);
  for (const std::uint32_t most : {64U, 1500U, 250'000U}) {
    CaptureBytes capture;
    capture.section().interface(kEthernet, 9, 262144);
    std::size_t packets = 0;
    for (std::uint64_t time = 1'700'000'000'000'000'000; capture.bytes().size() < 20U << 20; ++packets) {
      time += random() % 10'000'000;
      const Bytes frame(random() % (most + 1), static_cast<std::uint8_t>(random()));
      capture.packet(0, time, frame, static_cast<std::uint32_t>(frame.size()));
      if (random() % 50 == 0) capture.block(kCustom, Bytes(random() % 3000, 6));
    }
    EXPECT_EQ(expect_as_libpcap(capture.bytes()).in_place, packets);
    // libpcap reads on behind a block that is larger than a piece, up to a cut.
    capture.block(kCustom, Bytes(1'500'000, 6)).packet(0, 1, kFrame, 17).u32(6).u32(48);
    EXPECT_EQ(expect_as_libpcap(capture.bytes()).in_place, packets);
  }
}

}  // namespace
}  // namespace penstock::port
