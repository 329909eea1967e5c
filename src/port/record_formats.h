// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How packets lie in captures of this machine's byte order, for readers that parse them in place.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "port/pcapng_blocks.h"

namespace penstock::port {

/// The value at an address that need not be aligned.
template <typename T>
T load(const std::uint8_t* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// The file header of a classic capture.
struct ClassicHeader {
  static constexpr std::uint32_t kMicroseconds = 0xa1b2c3d4;
  static constexpr std::uint32_t kNanoseconds = 0xa1b23c4d;

  std::uint32_t magic;
  std::uint16_t major, minor;
  std::uint32_t zone, digits, snap_length, link_type;
};
static_assert(sizeof(ClassicHeader) == 24);

/// What precedes a packet in a classic capture.
struct RecordHeader {
  std::int32_t seconds, fraction;
  std::uint32_t length, wire_length;
};
static_assert(sizeof(RecordHeader) == 16);

/// The records of a classic capture, for RecordFinder.
struct ClassicRecords {
  static constexpr std::size_t kLeastBytes = sizeof(RecordHeader);
  static constexpr std::size_t kAlignment = 1;
  /// Programs seldom read beyond this: the ports behind IPv6 on Ethernet.
  static constexpr std::size_t kTested = 72;
  /// libpcap's limit to the captured bytes of a packet for most link types.
  static constexpr std::uint32_t kMostCaptured = 262144;

  /// The end of the record at `at`; 0 if it is incomplete or has more than kMostCaptured bytes.
  static std::size_t end_of(std::span<const std::uint8_t> piece, std::size_t at) noexcept {
    if (piece.size() - at < sizeof(RecordHeader)) return 0;
    const auto length = load<std::uint32_t>(piece.data() + at + offsetof(RecordHeader, length));
    if (length > kMostCaptured || length > piece.size() - at - sizeof(RecordHeader)) return 0;
    return at + sizeof(RecordHeader) + length;
  }

  /// Whether a record may begin here: its lengths are usual ones, and its time is close to that of a record nearby.
  static bool is_plausible(std::span<const std::uint8_t> piece, std::size_t at) noexcept {
    constexpr std::uint32_t kUsual = 65535, kDay = 86400;
    if (piece.size() - at < sizeof(RecordHeader)) return false;
    const auto header = load<RecordHeader>(piece.data() + at);
    const std::uint32_t seconds_apart = static_cast<std::uint32_t>(header.seconds) - load<std::uint32_t>(piece.data());
    return header.length <= kUsual && header.length <= header.wire_length && seconds_apart + kDay <= 2 * kDay;
  }
};

/// The blocks of a pcapng capture, of all types, for RecordFinder.
struct PcapngBlocks {
  static constexpr std::size_t kLeastBytes = pcapng::kHead + pcapng::kTail;
  static constexpr std::size_t kAlignment = 4;  // from the begin of the piece
  static constexpr std::size_t kTested = 84;

  /// The end of the block at `at`; 0 if it is incomplete or its length is wrong.
  static std::size_t end_of(std::span<const std::uint8_t> piece, std::size_t at) noexcept {
    if (piece.size() - at < kLeastBytes) return 0;
    const std::uint8_t* const block = piece.data() + at;
    const auto length = load<std::uint32_t>(block + 4);
    if (length < kLeastBytes || length % 4 != 0 || length > piece.size() - at) return 0;
    return load<std::uint32_t>(block + length - pcapng::kTail) == length ? at + length : 0;
  }

  /// Whether an Enhanced Packet Block of usual length may begin here.
  static bool is_plausible(std::span<const std::uint8_t> piece, std::size_t at) noexcept {
    constexpr std::uint32_t kUsual = 65536;
    if (piece.size() - at < pcapng::kEnhancedBytes) return false;
    const auto length = load<std::uint32_t>(piece.data() + at + 4);
    return load<std::uint32_t>(piece.data() + at) == pcapng::kEnhancedPacket && length >= pcapng::kEnhancedBytes &&
           length <= kUsual;
  }
};

}  // namespace penstock::port
