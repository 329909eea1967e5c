// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which worker's connection has a tuple. Shared by all tables of a run whose connections may get packets that come to
// another worker. A tuple has at most one owner over all workers. Lock-free: an entry is one word, so readers never see
// half of one. All memory is reserved at construction.
//
//   tuple ─▶ keyed hash ─▶ two buckets of 8 words ─▶ [fingerprint: 56 bits | worker: 8 bits]; 0: free

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/huge_page_allocator.h"
#include "conntrack/tuple.h"

namespace penstock::conntrack {

class TupleOwners {
 public:
  /// Where a tuple was entered, or why it was not.
  using Place = std::uint32_t;
  static constexpr Place kTaken = 0xffffffff;  // it has an owner
  static constexpr Place kFull = 0xfffffffe;   // both of its buckets are full
  [[nodiscard]] static constexpr bool is_entered(Place place) noexcept { return place < kFull; }

  /// Room for `most_tuples`, at a load of one half at most. `seed`: of the hash; empty: random.
  explicit TupleOwners(std::uint64_t most_tuples, std::optional<std::uint64_t> seed = std::nullopt);
  TupleOwners(const TupleOwners&) = delete;
  TupleOwners& operator=(const TupleOwners&) = delete;

  /// Where a tuple is looked for.
  struct Key {
    std::uint64_t fingerprint = 0;          // in its place in a word; not 0
    std::array<std::uint32_t, 2> places{};  // the first of each bucket
  };
  [[nodiscard]] Key key_of(const Tuple& tuple) const noexcept;
  /// Call it some time before find() or enter().
  void prefetch(const Key& key) const noexcept;

  // Thread-safe.

  /// The tuple belongs to a connection of this worker from here on, if it has no owner. If two workers enter a tuple at
  /// the same time, at most one of them succeeds, and maybe none.
  [[nodiscard]] Place enter(const Tuple& tuple, unsigned worker) noexcept;
  /// Called by the owner, once.
  void leave(Place place) noexcept { words_[place].store(0, std::memory_order_release); }
  /// The owner. Two tuples are taken for the same one with a probability of about 2^-52 for each look-up.
  [[nodiscard]] std::optional<unsigned> find(const Key& key) const noexcept;
  [[nodiscard]] std::optional<unsigned> find(const Tuple& tuple) const noexcept { return find(key_of(tuple)); }

 private:
  static constexpr std::uint32_t kBucketWords = 8;  // a cache line
  using Word = std::atomic<std::uint64_t>;

  [[nodiscard]] bool has_other(const Key& key, Place place) const noexcept;

  std::array<std::uint64_t, 4> seeds_;
  std::uint32_t bucket_mask_;
  HugeMemory<Word> words_;
};

}  // namespace penstock::conntrack
