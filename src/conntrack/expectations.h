// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The connections that helpers expect (nf_conntrack_expect): at most one for each connection with a helper, its master.
// They live for five minutes. Bounded; all memory is reserved at construction.

#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "conntrack/connection.h"
#include "conntrack/tuple_owners.h"

namespace penstock::conntrack {

struct Expectation {
  Tuple tuple;                                // of its first packet, with source port 0 for any
  std::uint32_t master = 0;                   // index in the store
  std::uint16_t announced_port = 0;           // the destination port that the announcement had before it was translated
  Direction direction = Direction::original;  // of the announcement
  bool translated = false;                    // its addresses are translated as those of its master
  std::uint32_t announcement = 0;             // the number of the announcement
  TupleOwners::Place place = TupleOwners::kTaken;  // of the tuple among all workers, if the table is shared
};

class Expectations {
 public:
  static constexpr std::uint32_t kNone = Connection::kNone;
  static constexpr std::uint64_t kLifetimeNs = 300'000'000'000;

  /// `capacity` 0: there are never any.
  Expectations(std::uint32_t capacity, std::uint64_t seed);
  Expectations(const Expectations&) = delete;
  Expectations& operator=(const Expectations&) = delete;

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] bool full() const noexcept { return size_ == capacity_; }
  /// The one whose tuple is this one, except for the source port; kNone: there is none.
  [[nodiscard]] std::uint32_t find(const Tuple& tuple) const noexcept;
  [[nodiscard]] const Expectation& at(std::uint32_t index) const noexcept { return entries_[index].what; }
  /// There is room, and no other one has its tuple.
  std::uint32_t add(const Expectation& what, std::uint64_t now_ns) noexcept;
  void remove(std::uint32_t index) noexcept;
  /// The oldest one if its time is over, else kNone.
  [[nodiscard]] std::uint32_t oldest_expired(std::uint64_t now_ns) const noexcept {
    return oldest_ != kNone && entries_[oldest_].expires_ns <= now_ns ? oldest_ : kNone;
  }

 private:
  struct Entry {
    Expectation what;
    std::uint64_t expires_ns = 0;
    std::uint32_t next_in_bucket = kNone;  // or the next free one
    std::uint32_t older = kNone, newer = kNone;
  };

  [[nodiscard]] std::uint32_t& bucket_of(const Tuple& tuple) const noexcept;

  const std::uint32_t capacity_;
  const std::uint64_t seed_;
  const std::uint32_t mask_;
  std::unique_ptr<Entry[]> entries_;
  std::unique_ptr<std::uint32_t[]> buckets_;
  std::uint32_t free_ = kNone, used_ = 0, size_ = 0;
  std::uint32_t oldest_ = kNone, newest_ = kNone;
};

}  // namespace penstock::conntrack
