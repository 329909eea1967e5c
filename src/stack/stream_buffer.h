// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reassembly buffer for one direction of a stream. It holds runs: bytes without holes, contiguous in memory. Where
// segments overlap, a policy decides whose bytes to keep, by where both segments begin and end. Each run is one
// allocation from a pool (stream_buffer.cc shows its layout); there is no other memory. The pool alone limits the
// number of runs, and finding or joining runs takes logarithmic time.

#pragma once

#include <algorithm>
#include <boost/intrusive/set.hpp>
#include <cstddef>
#include <cstdint>

#include "base/prefetch.h"
#include "stack/decoded_packet.h"
#include "stack/memory_pool.h"
#include "stack/tracker_options.h"

namespace penstock::stack {

/// Whether the bytes of a new segment [begin, end) replace those of an old one where the two overlap (Novak & Sturges,
/// "Target-Based TCP Stream Reassembly", 2007). Hosts do not treat segments as they treat fragments. `bsd_right` is
/// documented for fragments only; here it means the same.
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
    bool kept = true;        // false: out of memory; nothing has changed
    bool different = false;  // it overlaps bytes with different content
  };
  struct Run {
    std::uint64_t offset = 0;
    Bytes bytes;  // empty: there is no such run
    [[nodiscard]] std::uint64_t end() const noexcept { return offset + bytes.size(); }
  };
  StreamBuffer() noexcept;
  /// The buffer must be empty: call `clear` first, which returns the memory to the pool.
  ~StreamBuffer();
  StreamBuffer(const StreamBuffer&) = delete;
  StreamBuffer& operator=(const StreamBuffer&) = delete;

  /// Copies the segment into the buffer. `offset`: in the stream. Data before `begin()` is ignored. Existing bytes
  /// before `final` are kept whatever the policy.
  Inserted insert(MemoryPool& pool, std::uint64_t offset, Bytes segment, OverlapPolicy policy,
                  std::uint64_t final = 0) noexcept;

  /// The run that contains the byte at `from`, starting at `from`; otherwise the next run after it.
  [[nodiscard]] Run run_from(std::uint64_t from) const noexcept;
  /// The same, but the whole run.
  [[nodiscard]] Run whole_run_at(std::uint64_t at) const noexcept;

  /// Whether the buffer has all bytes in [offset, offset + length), whatever their content.
  [[nodiscard]] bool has(std::uint64_t offset, std::uint64_t length) const noexcept {
    const Run run = run_from(offset);
    return run.offset == offset && run.bytes.size() >= length;
  }
  struct Range {
    std::uint64_t begin = 0, end = 0;
  };
  /// The range without the bytes at its begin and at its end that the buffer has. If it has all of them: `begin` and
  /// `end` are both `range.end`. `range` must not be empty.
  [[nodiscard]] Range missing(Range range) const noexcept;
  /// Whether the buffer has all of these bytes with the same content.
  [[nodiscard]] bool holds(std::uint64_t offset, Bytes bytes) const noexcept;
  /// What remains of the segment that brought the byte at `at`, which must be in the buffer: from the segment's begin,
  /// or the end of another segment within it, up to the begin of the next.
  [[nodiscard]] Run segment_at(std::uint64_t at) const noexcept;
  /// Calls `use(offset, there, given)` for each run that overlaps `bytes` with different content. `there` is the whole
  /// overlap in the buffer, `given` the same range of `bytes`.
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

  /// Discards all data before `offset`. Such data is never accepted again.
  void drop_before(MemoryPool& pool, std::uint64_t offset) noexcept;
  void clear(MemoryPool& pool) noexcept;

  // Prefetching for a segment that probably extends the last run, in two steps. Leave time between them so that the
  // first cache line can arrive.
  void prefetch_last_run() const noexcept {
    if (last_ != nullptr) prefetch(last_);
  }
  void prefetch_end_of_last_run() const noexcept;

  [[nodiscard]] std::uint64_t begin() const noexcept { return begin_; }
  /// One past the highest byte ever received.
  [[nodiscard]] std::uint64_t right_edge() const noexcept { return right_edge_; }
  [[nodiscard]] bool empty() const noexcept { return runs_.empty(); }

 private:
  struct Block;
  using Hook = boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>,
                                               boost::intrusive::optimize_size<true>>;
  struct EndOf {
    using type = std::uint64_t;
    type operator()(const Block& block) const noexcept;
  };
  /// In stream order. Runs never touch, so they are also ordered by their ends.
  using Runs = boost::intrusive::set<Block, boost::intrusive::base_hook<Hook>, boost::intrusive::key_of_value<EndOf>,
                                     boost::intrusive::constant_time_size<false>>;
  using Place = Runs::iterator;

  void add_before(const Place& next, Block& block) noexcept;
  /// Returns the position of the next run.
  Place remove(MemoryPool& pool, const Place& place) noexcept;
  Place replace(MemoryPool& pool, const Place& place, Block& block) noexcept;
  [[nodiscard]] static Block* make_block(MemoryPool& pool, std::uint64_t offset, std::size_t room) noexcept;
  static void free_block(MemoryPool& pool, Block* block) noexcept;
  [[nodiscard]] bool make_room(MemoryPool& pool, Place& place, std::size_t left, std::size_t right) noexcept;
  static void append(Block& block, const std::uint8_t* bytes, std::size_t count) noexcept;
  /// Returns whether any bytes differed.
  [[nodiscard]] static bool resolve(Block& block, std::uint64_t offset, Bytes segment, OverlapPolicy policy,
                                    std::uint64_t final) noexcept;
  static void copy(Block& to, std::uint32_t at, Block& from) noexcept;

  Runs runs_;
  Block* last_ = nullptr;  // cached, so that prefetching does not walk the tree
  std::uint64_t begin_ = 0;
  std::uint64_t right_edge_ = 0;
};

}  // namespace penstock::stack
