// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the receiver of a stream may have read in place of what the stream's buffer holds. Hosts differ in which of two
// overlapping segments they keep, and a segment may be lost behind the watcher: only the receiver knows. So each
// version of a byte is kept until the receiver has acknowledged the byte and the version has been inspected.
//
//   seq   0         8        16
//         |--EVIL----|               arrives, and dies on the way (TTL)?
//                |--LIKES--|         keeps its 4 bytes on such hosts as prefer the older segment
//
// Memory is a pool's, taken when a stream is contested for the first time: streams that are not pay for a pointer.

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
  static constexpr std::size_t kMostBytes = 128 << 10;  // of all versions of one direction

  struct Version {
    std::uint64_t offset = 0;  // in the stream
    const std::uint8_t* data = nullptr;
    std::uint32_t length = 0;
    std::uint8_t order = 0;  // of the pool's piece
    bool possible = false;   // the receiver may have it: the session took it, or the receiver acknowledged its bytes
    bool offered = false;    // it has been inspected, as far as its bytes may be
    [[nodiscard]] std::uint64_t end() const noexcept { return offset + length; }
    [[nodiscard]] Bytes bytes() const noexcept { return {data, length}; }
  };
  /// The byte at which an urgent pointer points. Most hosts leave it out of the stream (RFC 6093), if it is still the
  /// latest when they read it.
  struct UrgentMark {
    std::uint64_t offset = 0;
    bool offered = false;
  };

  /// Null where the pool has no room.
  [[nodiscard]] static ContestedBytes* make(MemoryPool& pool) noexcept;
  static void free(MemoryPool& pool, ContestedBytes* contested) noexcept;

  enum class Added : std::uint8_t { added, known, displaced, no_room };
  enum class Kind : std::uint8_t { taken, refused };  // by the session
  /// Keeps a copy. `displaced`: it took the place of an older version.
  Added add(MemoryPool& pool, std::uint64_t offset, Bytes bytes, Kind kind) noexcept;
  Added add_urgent(std::uint64_t offset) noexcept;

  /// Whether a version has other content than these bytes, in their place.
  [[nodiscard]] bool contradicts(std::uint64_t offset, Bytes bytes) const noexcept;

  /// The receiver has acknowledged all bytes before `offset`. False: that is no news.
  bool acknowledge(std::uint64_t offset) noexcept;
  /// Whether something before `limit` has not been offered.
  [[nodiscard]] bool waits(std::uint64_t limit) const noexcept;
  /// Which versions and marks have been offered, by their places.
  struct Offered {
    std::bitset<kMostVersions> versions;
    std::bitset<kMostUrgent> urgent;
  };
  [[nodiscard]] Offered offered() const noexcept;
  void set_offered(const Offered& offered) noexcept;
  void forget_before(MemoryPool& pool, std::uint64_t offset) noexcept;
  /// The stream begins so many bytes earlier: all offsets grow.
  void shift(std::uint64_t bytes) noexcept;

  [[nodiscard]] std::span<Version> versions() noexcept { return {versions_.data(), version_count_}; }
  [[nodiscard]] std::span<const Version> versions() const noexcept { return {versions_.data(), version_count_}; }
  [[nodiscard]] std::span<UrgentMark> urgent() noexcept { return {urgent_.data(), urgent_count_}; }
  [[nodiscard]] std::span<const UrgentMark> urgent() const noexcept { return {urgent_.data(), urgent_count_}; }
  [[nodiscard]] bool empty() const noexcept { return version_count_ == 0 && urgent_count_ == 0; }
  /// Behind the last byte of any version.
  [[nodiscard]] std::uint64_t right_edge() const noexcept;

 private:
  void remove(MemoryPool& pool, std::size_t index) noexcept;
  void displace_one(MemoryPool& pool) noexcept;
  /// Of what nobody is known to have.
  [[nodiscard]] bool is_farthest(std::uint64_t offset) const noexcept;

  std::size_t bytes_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::uint32_t version_count_ = 0, urgent_count_ = 0;
  std::array<Version, kMostVersions> versions_;  // the oldest first
  std::array<UrgentMark, kMostUrgent> urgent_;
};

}  // namespace penstock::stack
