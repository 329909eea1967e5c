// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Alternative contents of a stream: bytes that the receiver may have read instead of those in the stream's buffer.
// Hosts differ in which of two overlapping segments they keep, and a segment may be lost after it passed the tracker.
// So each version of a byte is kept until the receiver has acknowledged the byte and the version has been inspected.
//
//   seq   0         8        16
//         |--EVIL----|               may expire before it reaches the host (TTL)
//                |--LIKES--|         hosts that prefer the older segment keep EVIL where the two overlap
//
// Memory comes from a pool and is allocated when a stream first becomes contested. Other streams pay only for a
// pointer.

#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <span>

#include "stack/decoded_packet.h"
#include "stack/memory_pool.h"

namespace penstock::stack {

class ContestedBytes {
 public:
  static constexpr std::size_t kMostVersions = 240;
  static constexpr std::size_t kMostUrgent = 32;
  static constexpr std::size_t kMostBytes = 128 << 10;  // of all versions, per direction

  struct Version {
    std::uint64_t offset = 0;  // in the stream
    const std::uint8_t* data = nullptr;
    std::uint32_t length = 0;
    std::uint8_t order = 0;  // of the allocation from the pool
    bool possible = false;   // the receiver may have it: accepted by the session, or its bytes were acknowledged
    bool offered = false;    // it has been inspected
    [[nodiscard]] std::uint64_t end() const noexcept { return offset + length; }
    [[nodiscard]] Bytes bytes() const noexcept { return {data, length}; }
  };
  /// The byte that an urgent pointer refers to. Most hosts remove it from the stream (RFC 6093) if no later urgent
  /// pointer has arrived by the time that they read it.
  struct UrgentMark {
    std::uint64_t offset = 0;
    bool offered = false;
  };

  /// Null if the pool is full. Release with `free`.
  [[nodiscard]] static ContestedBytes* make(MemoryPool& pool) noexcept;
  static void free(MemoryPool& pool, ContestedBytes* contested) noexcept;

  enum class Added : std::uint8_t { added, known, displaced, no_room };
  enum class Kind : std::uint8_t { taken, refused };  // accepted or rejected by the session
  /// Stores a copy of the bytes. `offset`: in the stream. `known`: an existing version already has them. `displaced`:
  /// another version was removed to make room.
  Added add(MemoryPool& pool, std::uint64_t offset, Bytes bytes, Kind kind) noexcept;
  Added add_urgent(std::uint64_t offset) noexcept;

  /// Whether any version overlaps these bytes with different content.
  [[nodiscard]] bool contradicts(std::uint64_t offset, Bytes bytes) const noexcept;

  /// The receiver has acknowledged all bytes before `offset`. False if that was already known.
  bool acknowledge(std::uint64_t offset) noexcept;
  /// Whether a possible version or an urgent mark before `limit` has not been offered yet.
  [[nodiscard]] bool waits(std::uint64_t limit) const noexcept;
  /// Which versions and urgent marks have been offered, by index.
  struct Offered {
    std::bitset<kMostVersions> versions;
    std::bitset<kMostUrgent> urgent;
  };
  [[nodiscard]] Offered offered() const noexcept;
  void set_offered(const Offered& offered) noexcept;
  void forget_before(MemoryPool& pool, std::uint64_t offset) noexcept;
  /// Adds `bytes` to all offsets, because the stream now begins that much earlier.
  void shift(std::uint64_t bytes) noexcept;

  [[nodiscard]] std::span<Version> versions() noexcept { return {versions_.data(), version_count_}; }
  [[nodiscard]] std::span<const Version> versions() const noexcept { return {versions_.data(), version_count_}; }
  [[nodiscard]] std::span<UrgentMark> urgent() noexcept { return {urgent_.data(), urgent_count_}; }
  [[nodiscard]] std::span<const UrgentMark> urgent() const noexcept { return {urgent_.data(), urgent_count_}; }
  [[nodiscard]] bool empty() const noexcept { return version_count_ == 0 && urgent_count_ == 0; }
  /// One past the last byte of any version.
  [[nodiscard]] std::uint64_t right_edge() const noexcept;

 private:
  void remove(MemoryPool& pool, std::size_t index) noexcept;
  void displace_one(MemoryPool& pool) noexcept;
  /// Whether no version that is not `possible` begins after `offset`.
  [[nodiscard]] bool is_farthest(std::uint64_t offset) const noexcept;

  std::size_t bytes_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::uint32_t version_count_ = 0, urgent_count_ = 0;
  std::array<Version, kMostVersions> versions_;  // oldest first
  std::array<UrgentMark, kMostUrgent> urgent_;
};

}  // namespace penstock::stack
