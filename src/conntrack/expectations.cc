// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/expectations.h"

#include <algorithm>
#include <bit>

namespace penstock::conntrack {

Expectations::Expectations(std::uint32_t capacity, std::uint64_t seed)
    : capacity_(std::min<std::uint32_t>(capacity, 1U << 24)),
      seed_(seed),
      mask_(std::bit_ceil(std::max<std::uint32_t>(capacity_, 1)) - 1),
      entries_(std::make_unique<Entry[]>(capacity_)),
      buckets_(std::make_unique<std::uint32_t[]>(mask_ + 1)) {
  std::fill_n(buckets_.get(), mask_ + 1, kNone);
}

std::uint32_t& Expectations::bucket_of(const Tuple& tuple) const noexcept {
  return buckets_[hash_of(tuple, seed_) & mask_];
}

std::uint32_t Expectations::find(const Tuple& tuple) const noexcept {
  if (empty()) return kNone;
  Tuple from_any_port = tuple;
  from_any_port.source_port = 0;
  std::uint32_t index = bucket_of(from_any_port);
  while (index != kNone && entries_[index].what.tuple != from_any_port) index = entries_[index].next_in_bucket;
  return index;
}

std::uint32_t Expectations::add(const Expectation& what, std::uint64_t now_ns) noexcept {
  std::uint32_t index = free_;
  if (index != kNone) {
    free_ = entries_[index].next_in_bucket;
  } else {
    index = used_++;
  }
  std::uint32_t& bucket = bucket_of(what.tuple);
  entries_[index] = {what, now_ns + kLifetimeNs, bucket, newest_, kNone};
  bucket = index;
  (newest_ == kNone ? oldest_ : entries_[newest_].newer) = index;
  newest_ = index;
  ++size_;
  return index;
}

void Expectations::remove(std::uint32_t index) noexcept {
  Entry& entry = entries_[index];
  std::uint32_t* link = &bucket_of(entry.what.tuple);
  while (*link != index) link = &entries_[*link].next_in_bucket;
  *link = entry.next_in_bucket;
  (entry.older == kNone ? oldest_ : entries_[entry.older].newer) = entry.newer;
  (entry.newer == kNone ? newest_ : entries_[entry.newer].older) = entry.older;
  entry.next_in_bucket = free_;
  free_ = index;
  --size_;
}

}  // namespace penstock::conntrack
