// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Records which bytes of streams have been searched for literals, and what was found: inspected bytes, which are
// inspected again together with the bytes that follow, and packet payloads that a GPU has searched before their stream
// is inspected. Only the other bytes, and those around the seams between searched parts, still have to be scanned. It
// is a cache: entries that do not fit are forgotten, and their bytes are scanned again. It never claims to know bytes
// that were not searched, or that may have arrived in a packet that was not noted.

#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "nf/nids/match/flow_state.h"
#include "stack/flow.h"
#include "stack/tcp_session.h"

namespace penstock::nids {

class StreamFindings {
 public:
  /// Holds 2^`bits` stream directions, 408 bytes each. Memory is allocated with the first one.
  explicit StreamFindings(unsigned bits = 15) : bits_(bits) {}

  /// Forgets everything, at no cost. For when packets may have come that were not noted, or were searched for other
  /// literals.
  void forget() noexcept { ++generation_; }

  /// A packet's payload, as offsets in its direction's stream. It may be empty: packets without payload tell where a
  /// stream stands before any of its bytes arrive.
  struct Segment {
    std::uint64_t begin = 0, end = 0;
    std::uint64_t highest = 0;  // end of what the stream has accepted so far, including this packet
    bool known = false;         // a GPU has searched the payload
    /// Null: segments come without states. Otherwise the payload was searched from this state on; an empty state means
    /// none.
    const FlowState* state = nullptr;
    std::span<const std::uint8_t> payload{};  // set if there is a state
  };
  /// If a GPU searches payloads, note each packet of a stream, in order. `literals`: what was found in it. A payload
  /// that overlaps earlier bytes does not count as known, because the stream may have kept other bytes there.
  void note(const stack::Flow& flow, stack::Direction direction, const Segment& segment,
            std::span<const std::uint32_t> literals) noexcept;

  struct Range {
    std::uint64_t begin = 0, end = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  struct Found {
    std::uint32_t literal = 0;
    std::uint64_t end = 0;  // the literal ends at or before this offset, as far as is known
    friend bool operator==(const Found&, const Found&) = default;
  };
  /// What is known about a range of a stream.
  struct Known {
    static constexpr std::size_t kMostRanges = 12;
    static constexpr std::size_t kMostLiterals = 20;
    std::array<Range, 2 * kMostRanges + 1> rest;  // still to be scanned; ascending and disjoint
    std::size_t rest_count = 0;
    std::array<Found, kMostLiterals> literals;  // literals that may lie in the range
    std::size_t literal_count = 0;
    /// Seams that need no scan: kCutLiteralBytes bytes of each literal that crosses them were searched everywhere. A
    /// literal may continue after the end that is known.
    std::uint32_t seams_known = 0;
  };
  /// Prefetches what is known of the flow's streams.
  void prefetch(const stack::Flow& flow) const noexcept;

  /// Looks up the bytes [begin, end). No literal may be longer than `reach` + 1.
  void look_up(const stack::Flow& flow, stack::Direction direction, std::uint64_t begin, std::uint64_t end,
               std::uint64_t reach, Known& known) const noexcept;

  /// Records that these bytes have been inspected and will not change, and that what look_up left to scan has been
  /// scanned. `found`: what was found there.
  void searched(const stack::Flow& flow, stack::Direction direction, std::uint64_t begin, std::uint64_t end,
                std::uint64_t reach, std::span<const Found> found) noexcept;

 private:
  enum class Kind : std::uint8_t {
    inspected,  // searched as they are in the stream
    noted,      // a payload that a GPU has searched
    unknown,    // a payload that was not searched
  };
  struct Piece {
    std::uint64_t begin;
    std::uint32_t length;
    Kind kind;
    bool joined = false;  // noted, and searched together with the bytes before it: see Entry::joined_from
    [[nodiscard]] std::uint64_t end() const noexcept { return begin + length; }
  };
  struct Entry {
    static constexpr std::uint64_t kNotNoted = ~std::uint64_t{0};

    std::uint64_t key;          // identifies flow and direction; 0: empty
    std::uint64_t floor;        // everything before it is forgotten
    std::uint64_t note_floor;   // bytes before it may have come in packets that were not noted
    std::uint64_t note_end;     // end of the noted payloads
    std::uint64_t joined_from;  // from here to note_end, all bytes were searched as one, and the literals found are
                                // stored
    FlowState joined_state;     // at note_end; empty if nothing is joined
    std::uint8_t piece_count, literal_count;
    std::uint32_t generation;  // if it is not the current one, the entry is empty
    std::array<Piece, Known::kMostRanges> pieces;
    struct Literal {
      std::uint32_t literal;
      std::uint32_t end;  // end of the bytes in which it was found, modulo 2^32
    };
    std::array<Literal, Known::kMostLiterals> literals;
  };
  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };

  [[nodiscard]] static std::uint64_t key_of(const stack::Flow& flow, stack::Direction direction) noexcept {
    const unsigned beginnings = flow.tcp == nullptr ? 0 : flow.tcp->stream(direction).beginnings;
    return (flow.id + 1) << 5 | (beginnings & 15U) << 1 | static_cast<std::uint64_t>(direction);
  }
  [[nodiscard]] Entry& place_of(std::uint64_t key) const noexcept {
    return entries_[key * 0x9e37'79b9'7f4a'7c15U >> (64 - bits_)];
  }
  /// Null if the system is out of memory: nothing is known then, and everything is scanned.
  [[nodiscard]] Entry* entry_of(std::uint64_t key) noexcept;
  /// Notes a segment that is not empty. Returns whether it was searched together with the bytes before it.
  static bool join(Entry& entry, const Segment& segment, bool is_known) noexcept;
  static void forget_before(Entry& entry, std::uint64_t floor) noexcept;
  static void add_literal(Entry& entry, std::uint32_t literal, std::uint64_t end) noexcept;

  unsigned bits_;
  std::unique_ptr<Entry[], Free> entries_;
  bool has_no_memory_ = false;
  std::uint32_t generation_ = 0;
};

}  // namespace penstock::nids
