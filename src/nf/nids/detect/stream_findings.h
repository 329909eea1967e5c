// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What another processor found in payloads that went to streams, until the streams are inspected: then only the bytes
// around the seams between payloads are still to be scanned. A cache: what has no room is forgotten, and its bytes are
// scanned here. It never says that it knows bytes that may have come in a packet which it was not told of.

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "stack/flow.h"

namespace penstock::nids {

class StreamFindings {
 public:
  /// 2^`bits` directions of streams at once, 272 bytes each, taken when the first packet is noted.
  explicit StreamFindings(unsigned bits = 14) : bits_(bits) {}

  /// A packet's payload, in bytes of its direction's stream. It may be empty: packets without one tell where a stream
  /// stands before any bytes of it come.
  struct Segment {
    std::uint64_t begin = 0, end = 0;
    std::uint64_t highest = 0;  // end of all that the stream has taken up to now, of this packet too
    bool known = false;         // the payload was searched elsewhere, and is in the stream as it was there
  };
  /// Each packet of a stream must be noted, in order. `literals`: what was found in it.
  void note(const stack::Flow& flow, stack::Direction direction, const Segment& segment,
            std::span<const std::uint32_t> literals) noexcept;

  /// What is known of a stream's bytes [begin, end).
  struct Known {
    static constexpr std::size_t kMostLiterals = 12;
    static constexpr std::size_t kMostSeams = 24;
    std::array<std::uint32_t, kMostLiterals> literals;
    std::array<std::uint64_t, kMostSeams> seams;  // sorted; bytes on either side of one came in different packets
    std::size_t literal_count = 0, seam_count = 0;
  };
  /// False: the bytes are to be scanned.
  [[nodiscard]] bool look_up(const stack::Flow& flow, stack::Direction direction, std::uint64_t begin,
                             std::uint64_t end, Known& known) const noexcept;

 private:
  static constexpr std::size_t kSegments = Known::kMostSeams / 2;
  struct Entry {
    std::uint64_t flow = 0;   // its id and the direction; 0: none
    std::uint64_t floor = 0;  // nothing is known of bytes before it
    std::uint8_t segment_count = 0, literal_count = 0;
    struct Range {
      std::uint64_t begin;
      std::uint32_t length;
      bool known;
    };
    std::array<Range, kSegments> segments;
    struct Found {
      std::uint32_t literal;
      std::uint32_t end;  // of the segment that it was found in, modulo 2^32
    };
    std::array<Found, Known::kMostLiterals> literals;
  };

  [[nodiscard]] static std::uint64_t key_of(const stack::Flow& flow, stack::Direction direction) noexcept {
    return (flow.id + 1) << 1 | static_cast<std::uint64_t>(direction);
  }
  [[nodiscard]] std::size_t place_of(std::uint64_t key) const noexcept {
    return static_cast<std::size_t>(key * 0x9e37'79b9'7f4a'7c15U >> (64 - bits_));
  }
  [[nodiscard]] bool take_memory() noexcept;
  static void forget_before(Entry& entry, std::uint64_t floor) noexcept;

  unsigned bits_;
  std::vector<Entry> entries_;
};

}  // namespace penstock::nids
