// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which bytes of streams have been searched for literals, and what was found in them: inspected bytes, which are looked
// at again with those that follow, and payloads of packets that another processor has searched before their stream is
// inspected. Only the rest, and the bytes around the seams between what was searched, is still to be scanned. A cache:
// what has no room is forgotten, and its bytes are scanned again. It never claims to know bytes that were not searched,
// or that may have come in a packet it was not told of.

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
  /// 2^`bits` directions of streams at once, 408 bytes each; memory is taken with the first of them, and used page by
  /// page.
  explicit StreamFindings(unsigned bits = 15) : bits_(bits) {}

  /// A packet's payload, in bytes of its direction's stream. It may be empty: packets without one tell where a stream
  /// stands before any bytes of it come.
  struct Segment {
    std::uint64_t begin = 0, end = 0;
    std::uint64_t highest = 0;  // end of all that the stream has taken up to now, of this packet too
    bool known = false;         // the payload was searched elsewhere
    /// Null: segments come without states. Else the payload was searched from this state on; empty: from none.
    const FlowState* state = nullptr;
    std::span<const std::uint8_t> payload{};  // where there is a state
  };
  /// Where payloads are searched elsewhere, each packet of a stream must be noted, in order. `literals`: what was found
  /// in it. Of a payload that reaches back to bytes before it the stream may have others: it does not count as known.
  void note(const stack::Flow& flow, stack::Direction direction, const Segment& segment,
            std::span<const std::uint32_t> literals) noexcept;

  struct Range {
    std::uint64_t begin = 0, end = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  struct Found {
    std::uint32_t literal = 0;
    std::uint64_t end = 0;  // it lies before it, as far as is known
    friend bool operator==(const Found&, const Found&) = default;
  };
  /// What is known of some bytes of a stream.
  struct Known {
    static constexpr std::size_t kMostRanges = 12;
    static constexpr std::size_t kMostLiterals = 20;
    std::array<Range, 2 * kMostRanges + 1> rest;  // still to be scanned: ascending, apart from each other
    std::size_t rest_count = 0;
    std::array<Found, kMostLiterals> literals;  // that may lie in the bytes
    std::size_t literal_count = 0;
    /// Seams that are not to be scanned: of each literal across them, kCutLiteralBytes bytes were searched for
    /// throughout. It may go on behind the end that is known.
    std::uint32_t seams_known = 0;
  };
  /// Of the bytes [begin, end). No literal is longer than `reach` + 1.
  void look_up(const stack::Flow& flow, stack::Direction direction, std::uint64_t begin, std::uint64_t end,
               std::uint64_t reach, Known& known) const noexcept;

  /// These bytes have been inspected, as they stay: what look_up left to scan has been scanned. `found`: what was found
  /// there.
  void searched(const stack::Flow& flow, stack::Direction direction, std::uint64_t begin, std::uint64_t end,
                std::uint64_t reach, std::span<const Found> found) noexcept;

 private:
  enum class Kind : std::uint8_t {
    inspected,  // searched as they are in the stream
    noted,      // a payload that was searched elsewhere
    unknown,    // one that was not
  };
  struct Piece {
    std::uint64_t begin;
    std::uint32_t length;
    Kind kind;
    bool joined = false;  // noted, and searched as one with the bytes before it: see Entry::joined_from
    [[nodiscard]] std::uint64_t end() const noexcept { return begin + length; }
  };
  struct Entry {
    static constexpr std::uint64_t kNotNoted = ~std::uint64_t{0};

    std::uint64_t key;          // of the flow and the direction; 0: none
    std::uint64_t floor;        // what lies before it was forgotten
    std::uint64_t note_floor;   // bytes before it may have come in packets that were not noted
    std::uint64_t note_end;     // of the payloads that were noted
    std::uint64_t joined_from;  // from here to note_end all bytes were searched as one, and what was found is kept
    FlowState joined_state;     // at note_end; empty: none were
    std::uint8_t piece_count, literal_count;
    std::array<Piece, Known::kMostRanges> pieces;
    struct Literal {
      std::uint32_t literal;
      std::uint32_t end;  // of where it was searched for, modulo 2^32
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
  /// Null where the system has no memory: nothing is known then, and all is scanned.
  [[nodiscard]] Entry* entry_of(std::uint64_t key) noexcept;
  /// Notes a segment that is not empty; whether it was searched as one with the bytes before it.
  static bool join(Entry& entry, const Segment& segment, bool is_known) noexcept;
  static void forget_before(Entry& entry, std::uint64_t floor) noexcept;
  static void add_literal(Entry& entry, std::uint32_t literal, std::uint64_t end) noexcept;

  unsigned bits_;
  std::unique_ptr<Entry[], Free> entries_;
  bool has_no_memory_ = false;
};

}  // namespace penstock::nids
