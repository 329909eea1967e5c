// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/tuple_owners.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "base/keyed_hash.h"
#include "base/prefetch.h"

namespace penstock::conntrack {

namespace {

constexpr unsigned kWorkerBits = 8;
constexpr std::uint64_t kWorkerMask = (std::uint64_t{1} << kWorkerBits) - 1;

std::uint32_t buckets_for(std::uint64_t most_tuples, std::uint32_t words) noexcept {
  constexpr std::uint64_t kMostWords = std::uint64_t{1} << 31;
  const std::uint64_t wanted = std::bit_ceil(std::clamp<std::uint64_t>(2 * most_tuples, words, kMostWords));
  return static_cast<std::uint32_t>(wanted / words);
}

}  // namespace

TupleOwners::TupleOwners(std::uint64_t most_tuples, std::optional<std::uint64_t> seed)
    : bucket_mask_(buckets_for(most_tuples, kBucketWords) - 1),
      words_(make_huge_memory<Word>((std::size_t{bucket_mask_} + 1) * kBucketWords)) {
  for (std::size_t i = 0; i < seeds_.size(); ++i) seeds_[i] = seed ? mix_product(*seed, i) : random_seed();
  std::uninitialized_value_construct_n(words_.get(), (std::size_t{bucket_mask_} + 1) * kBucketWords);
}

/// All factors contain a seed, so that nobody can make one of them 0, whatever the addresses are.
TupleOwners::Key TupleOwners::key_of(const Tuple& tuple) const noexcept {
  const std::uint64_t source = mix_product(tuple.source.high ^ seeds_[0], tuple.source.low ^ seeds_[1]);
  const std::uint64_t destination = mix_product(tuple.destination.high ^ seeds_[1], tuple.destination.low ^ seeds_[2]);
  const std::uint64_t rest = std::uint64_t{tuple.source_port} << 32 | std::uint64_t{tuple.destination_port} << 16 |
                             std::uint64_t{tuple.protocol} << 8 | tuple.ip_version;
  const std::uint64_t hash = mix_product(mix_product(source ^ seeds_[2], destination ^ seeds_[3]), rest ^ seeds_[0]);
  const std::uint64_t buckets = mix_product(hash ^ seeds_[3], rest ^ seeds_[1]);
  const auto place = [this](std::uint64_t bits) {
    return (static_cast<std::uint32_t>(bits) & bucket_mask_) * kBucketWords;
  };
  const std::uint64_t fingerprint = hash & ~kWorkerMask;
  return {fingerprint != 0 ? fingerprint : kWorkerMask + 1, {place(buckets), place(buckets >> 32)}};
}

TupleOwners::Place TupleOwners::enter(const Tuple& tuple, unsigned worker) noexcept {
  const Key key = key_of(tuple);
  while (true) {
    Place place = kFull;
    std::uint32_t most_free = 0;
    for (const std::uint32_t bucket : key.places) {
      std::uint32_t free = 0;
      Place first_free = kFull;
      for (Place i = bucket; i < bucket + kBucketWords; ++i) {
        const std::uint64_t word = words_[i].load();
        if ((word & ~kWorkerMask) == key.fingerprint) return kTaken;
        if (word == 0 && free++ == 0) first_free = i;
      }
      if (free > most_free) {
        most_free = free;
        place = first_free;
      }
    }
    if (place == kFull) return kFull;
    std::uint64_t none = 0;
    if (!words_[place].compare_exchange_strong(none, key.fingerprint | worker)) continue;
    if (!has_other(key, place)) return place;
    // Another worker has entered it since it was looked for. The one that came later sees the other one's word, since
    // all these operations have one order.
    leave(place);
    return kTaken;
  }
}

bool TupleOwners::has_other(const Key& key, Place place) const noexcept {
  for (const std::uint32_t bucket : key.places) {
    for (Place i = bucket; i < bucket + kBucketWords; ++i) {
      if (i != place && (words_[i].load() & ~kWorkerMask) == key.fingerprint) return true;
    }
  }
  return false;
}

void TupleOwners::prefetch(const Key& key) const noexcept {
  for (const std::uint32_t bucket : key.places) penstock::prefetch(&words_[bucket]);
}

std::optional<unsigned> TupleOwners::find(const Key& key) const noexcept {
  for (const std::uint32_t bucket : key.places) {
    for (Place i = bucket; i < bucket + kBucketWords; ++i) {
      const std::uint64_t word = words_[i].load(std::memory_order_acquire);
      if ((word & ~kWorkerMask) == key.fingerprint) return static_cast<unsigned>(word & kWorkerMask);
    }
  }
  return std::nullopt;
}

}  // namespace penstock::conntrack
