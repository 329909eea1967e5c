// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The bytes of one direction of a stream, as segments bring them: in runs without holes, each contiguous in memory.
// Where segments overlap, a policy says whose bytes stay, by where both began and ended. Its memory is a pool's piece
// for each run, nothing else: see stream_buffer.cc for how a piece is laid out. Runs are as many as the pool has room
// for: to find one, and to join two, costs by the logarithm of their number.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/prefetch.h"
#include "stack/decoded_packet.h"
#include "stack/memory_pool.h"
#include "stack/tracker_options.h"

namespace penstock::stack {

/// Whether the bytes of a new segment [begin, end) replace those of an old one, where they overlap (Novak & Sturges,
/// "Target-Based TCP Stream Reassembly", 2007): hosts do not treat segments as they treat fragments. `bsd_right` is
/// known of fragments alone, and means the same here.
[[nodiscard]] constexpr bool new_bytes_win(OverlapPolicy policy, std::uint64_t begin, std::uint64_t end,
                                           std::uint64_t old_begin, std::uint64_t old_end) noexcept {
  switch (policy) {
    case OverlapPolicy::first: return false;
    case OverlapPolicy::last: return true;
    case OverlapPolicy::bsd:
    case OverlapPolicy::windows: return begin < old_begin;
    case OverlapPolicy::bsd_right: return begin >= old_begin;
    case OverlapPolicy::linux_host: return begin < old_begin || (begin == old_begin && end > old_end);
    case OverlapPolicy::solaris: return end > old_end || (end == old_end && begin <= old_begin);
  }
  return false;
}

class StreamBuffer {
 public:
  struct Inserted {
    bool kept = true;        // false: no room for it; nothing has changed
    bool different = false;  // it overlaps with bytes that are not its own
  };
  struct Run {
    std::uint64_t offset = 0;
    Bytes bytes;  // none: there is no such run
    [[nodiscard]] std::uint64_t end() const noexcept { return offset + bytes.size(); }
  };
  /// `offset`: in the stream. Of what lies before `begin()`, nothing is kept. Bytes before `final` that are there stay,
  /// whatever the policy.
  Inserted insert(MemoryPool& pool, std::uint64_t offset, Bytes segment, OverlapPolicy policy,
                  std::uint64_t final = 0) noexcept;

  /// What there is of the run that holds the byte at `from`, from there on; or of the first run behind it.
  [[nodiscard]] Run run_from(std::uint64_t from) const noexcept;
  /// The same, but all of the run.
  [[nodiscard]] Run whole_run_at(std::uint64_t at) const noexcept;

  /// Whether so many bytes are there from `offset` on, whatever they are.
  [[nodiscard]] bool has(std::uint64_t offset, std::uint64_t length) const noexcept {
    const Run run = run_from(offset);
    return run.offset == offset && run.bytes.size() >= length;
  }
  /// Whether all of these bytes are there, as they are.
  [[nodiscard]] bool holds(std::uint64_t offset, Bytes bytes) const noexcept;
  /// What there is of the segment that has the byte at `at`, which must be there: from where it begins, or another one
  /// ends in it, to where the next one begins.
  [[nodiscard]] Run segment_at(std::uint64_t at) const noexcept;
  /// Calls `use(offset, there, given)` for each stretch of bytes that is there with other content than in `bytes`.
  template <typename Use>
  void for_each_difference(std::uint64_t offset, Bytes bytes, Use&& use) const {
    const std::uint64_t end = offset + bytes.size();
    for (std::uint64_t at = offset; at < end;) {
      const Run run = run_from(at);
      if (run.bytes.empty() || run.offset >= end) return;
      const std::size_t length = static_cast<std::size_t>(std::min(run.end(), end) - run.offset);
      const Bytes there = run.bytes.first(length);
      const Bytes given = bytes.subspan(static_cast<std::size_t>(run.offset - offset), length);
      if (!std::equal(there.begin(), there.end(), given.begin())) use(run.offset, there, given);
      at = run.offset + length;
    }
  }

  /// Lets go of all before it. Bytes before it will never be taken again.
  void drop_before(MemoryPool& pool, std::uint64_t offset) noexcept;
  void clear(MemoryPool& pool) noexcept;

  // Before a segment that most likely follows the last run: two steps, with time between them for what the first
  // fetches to arrive.
  void prefetch_last_run() const noexcept {
    if (tail_ != nullptr) prefetch(tail_);
  }
  void prefetch_end_of_last_run() const noexcept;

  [[nodiscard]] std::uint64_t begin() const noexcept { return begin_; }
  /// Behind the last byte that ever came.
  [[nodiscard]] std::uint64_t right_edge() const noexcept { return right_edge_; }
  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }

 private:
  struct Block;

  /// The first that ends at `from` or behind it; null if there is none.
  [[nodiscard]] Block* first_ending_at(std::uint64_t from) const noexcept;
  /// What in the tree points to the run.
  [[nodiscard]] Block** link_of(const Block* block) noexcept;
  void plant(Block* block) noexcept;
  void uproot(Block* block) noexcept;
  [[nodiscard]] static Block* make_block(MemoryPool& pool, std::uint64_t offset, std::size_t room) noexcept;
  static void free_block(MemoryPool& pool, Block* block) noexcept;
  [[nodiscard]] bool make_room(MemoryPool& pool, Block*& block, std::size_t left, std::size_t right) noexcept;
  void unlink(MemoryPool& pool, Block* block) noexcept;
  void link_before(Block* block, Block* next) noexcept;
  static void append(Block& block, const std::uint8_t* bytes, std::size_t count) noexcept;
  /// Tells whether bytes differed.
  [[nodiscard]] static bool resolve(Block& block, std::uint64_t offset, Bytes segment, OverlapPolicy policy,
                                    std::uint64_t final) noexcept;
  static void copy(Block& to, std::uint32_t at, Block& from) noexcept;

  Block* head_ = nullptr;
  Block* tail_ = nullptr;
  Block* root_ = nullptr;
  std::uint64_t begin_ = 0;
  std::uint64_t right_edge_ = 0;
};

}  // namespace penstock::stack
