// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How generated code reads packets: in aligned words, wherever a packet begins. So a packet must lie in memory of which
// all aligned words that contain one of its bytes can be read. The text of this file is also the beginning of all
// generated code, so it includes nothing but <cstdint>. For little-endian machines.

#pragma once

#ifdef __CUDACC_RTC__
namespace std {
using uint8_t = unsigned char;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
using uintptr_t = unsigned long;
}  // namespace std
#else
#include <cstdint>
#endif

#ifndef PENSTOCK_HOST_DEVICE
#ifdef __CUDACC__
#define PENSTOCK_HOST_DEVICE __host__ __device__
#else
#define PENSTOCK_HOST_DEVICE
#endif
#endif

namespace penstock::filter {

struct PacketWindow {
  const std::uint32_t* words;  // the first one contains the packet's first byte
  std::uint32_t shift;         // the bits of the first word before it
  std::uint32_t available;     // bytes that are there
  std::uint32_t length;        // captured bytes; as many as are there, if the packet is there as a whole
  std::uint32_t wire_length;
};

/// Packets in memory, with one record for each. Positions of fields are in bytes from the beginning of a record.
struct PacketRecords {
  const std::uint8_t* frames;
  const std::uint8_t* records;
  std::uint32_t count;
  std::uint32_t stride;     // of records
  std::uint32_t offset_at;  // the packet's offset from `frames`
  std::uint32_t length_at;
  std::uint32_t wire_length_at;
  std::uint32_t alive_at;        // a byte that is 0 if the packet is alive; kAllAlive if there is no such byte
  std::uint32_t most_available;  // only so many bytes of each packet are there
};
inline constexpr std::uint32_t kAllAlive = 0xffffffff;

/// The work of one launch.
struct MatchBatch {
  PacketRecords packets;
  std::uint32_t* words;     // output: a row for each packet
  std::uint32_t row_words;  // from row to row
  std::uint8_t* undecided;  // output, one for each packet: 1 if bytes that are not there decide; may be null
};

[[nodiscard]] PENSTOCK_HOST_DEVICE inline PacketWindow window_at(const std::uint8_t* data, std::uint32_t available,
                                                                 std::uint32_t length,
                                                                 std::uint32_t wire_length) noexcept {
  const std::uint32_t before = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(data) % 4);
  return {reinterpret_cast<const std::uint32_t*>(data - before), 8 * before, available, length, wire_length};
}

[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t record_field(const PacketRecords& packets, std::uint32_t packet,
                                                                     std::uint32_t position) noexcept {
  return *reinterpret_cast<const std::uint32_t*>(packets.records + std::uint64_t{packet} * packets.stride + position);
}

[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool is_alive(const PacketRecords& packets, std::uint32_t packet) noexcept {
  return packets.alive_at == kAllAlive ||
         packets.records[std::uint64_t{packet} * packets.stride + packets.alive_at] == 0;
}

[[nodiscard]] PENSTOCK_HOST_DEVICE inline const std::uint8_t* data_of(const PacketRecords& packets,
                                                                      std::uint32_t packet) noexcept {
  return packets.frames + record_field(packets, packet, packets.offset_at);
}

[[nodiscard]] PENSTOCK_HOST_DEVICE inline PacketWindow window_of(const PacketRecords& packets,
                                                                 std::uint32_t packet) noexcept {
  const std::uint32_t length = record_field(packets, packet, packets.length_at);
  const std::uint32_t available = length < packets.most_available ? length : packets.most_available;
  return window_at(data_of(packets, packet), available, length, record_field(packets, packet, packets.wire_length_at));
}

/// The four bytes at `offset`, a multiple of 4, the first one lowest; 0 if the first is not there, and any value for
/// others that are not.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t word_at(const PacketWindow& packet,
                                                                std::uint32_t offset) noexcept {
  if (offset >= packet.available) return 0;
  const std::uint32_t low = packet.words[offset / 4];
  if (packet.shift == 0) return low;
  // The next word, unless the packet ends before it.
  const std::uint32_t high = packet.available - offset > 4 - packet.shift / 8 ? packet.words[offset / 4 + 1] : 0;
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) >> packet.shift);
}

/// Four of the eight bytes of `low` and `high`, which are numbered from the lowest. Each digit of `selector` chooses
/// one, the lowest digit the lowest byte.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t select_bytes(std::uint32_t low, std::uint32_t high,
                                                                     std::uint32_t selector) noexcept {
#ifdef __CUDA_ARCH__
  return __byte_perm(low, high, selector);
#else
  const std::uint64_t both = std::uint64_t{high} << 32 | low;
  std::uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    result |= static_cast<std::uint32_t>(both >> (8 * (selector >> (4 * i) & 7)) & 0xff) << (8 * i);
  }
  return result;
#endif
}

/// A number of `width` bytes at any offset, in network byte order.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t number_at(const PacketWindow& packet, std::uint32_t offset,
                                                                  std::uint32_t width) noexcept {
  const std::uint32_t first = offset % 4;
  const std::uint32_t low = word_at(packet, offset - first);
  const std::uint32_t high = first + width > 4 ? word_at(packet, offset - first + 4) : 0;
  return select_bytes(low, high, 0x0123 + 0x1111 * first) >> (32 - 8 * width);
}

/// Whether a packet of `bytes` bytes has all before offset + end.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool has(std::uint32_t bytes, std::uint32_t offset,
                                                   std::uint32_t end) noexcept {
  return bytes >= end && offset <= bytes - end;
}

[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t divide(std::uint32_t a, std::uint32_t b) noexcept {
  return b == 0 ? 0 : a / b;
}
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t modulo(std::uint32_t a, std::uint32_t b) noexcept {
  return b == 0 ? 0 : a % b;
}
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t shift_left(std::uint32_t a, std::uint32_t b) noexcept {
  return b > 31 ? 0 : a << b;
}
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t shift_right(std::uint32_t a, std::uint32_t b) noexcept {
  return b > 31 ? 0 : a >> b;
}

}  // namespace penstock::filter
