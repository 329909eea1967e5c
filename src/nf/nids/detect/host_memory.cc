// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/host_memory.h"

#include <algorithm>
#include <bit>
#include <new>
#include <type_traits>
#include <utility>

#include "base/keyed_hash.h"

namespace penstock::nids {
namespace {

using Guard = std::lock_guard<std::mutex>;

}  // namespace

HostKey host_key(const stack::DecodedPacket& packet, bool source, HostRecordKind kind, std::uint32_t index) noexcept {
  return {.first = source ? packet.source.address : packet.destination.address,
          .second = {},
          .index = index,
          .ip_version = packet.ip_version,
          .pair = false,
          .kind = kind};
}

HostKey pair_key(const stack::DecodedPacket& packet, HostRecordKind kind, std::uint32_t index) noexcept {
  const auto [lower, upper] = std::minmax(packet.source.address, packet.destination.address);
  return {.first = lower, .second = upper, .index = index, .ip_version = packet.ip_version, .pair = true, .kind = kind};
}

HostKey common_key(HostRecordKind kind, std::uint32_t index) noexcept {
  return {.first = {}, .second = {}, .index = index, .ip_version = 0, .pair = false, .kind = kind};
}

HostMemory::HostMemory(std::size_t most_bytes) : parts_(std::make_unique<Parts>(most_bytes)) {}
HostMemory::~HostMemory() = default;
HostMemory::Counters HostMemory::counters() const noexcept { return parts_->counters(); }

HostMemory::Parts::Parts(std::size_t most_bytes) {
  static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) == 80);
  // A power of two of buckets, at most one for each record.
  constexpr std::size_t kBytesEach = sizeof(Record) + sizeof(std::uint32_t);
  constexpr std::size_t kMostShards = 64, kLeastInShard = 1024;
  const std::size_t most_records = std::max<std::size_t>(most_bytes / kBytesEach, 64);
  shards_ = std::vector<Shard>(std::clamp<std::size_t>(std::bit_floor(most_records / kLeastInShard), 1, kMostShards));
  capacity_ = static_cast<std::uint32_t>(std::min<std::size_t>(most_records / shards_.size(), std::size_t{1} << 31));
  const std::size_t bucket_count = std::bit_floor(std::size_t{capacity_});
  bucket_mask_ = bucket_count - 1;
  // Zeroed by the system, page by page as they are used. Record 0 of each shard is unused.
  records_.reset(static_cast<Record*>(std::calloc(shards_.size() * (capacity_ + std::size_t{1}), sizeof(Record))));
  buckets_.reset(static_cast<std::uint32_t*>(std::calloc(shards_.size() * bucket_count, sizeof(std::uint32_t))));
  if (!records_ || !buckets_) throw std::bad_alloc();
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    shards_[i].records = records_.get() + i * (capacity_ + std::size_t{1});
    shards_[i].buckets = buckets_.get() + i * bucket_count;
  }
  seed_ = random_seed();
}

std::uint64_t HostMemory::Parts::hash(const HostKey& key) const noexcept {
  // All tags of a host share a bucket, so that they are found together.
  const std::uint64_t index = key.kind == HostRecordKind::tag ? 0 : key.index;
  const std::uint64_t what = index << 16 | std::uint64_t{key.ip_version} << 8 | static_cast<std::uint64_t>(key.kind);
  return mix_product(mix_product(mix_product(seed_ ^ what, key.first.high), key.first.low ^ seed_),
                     mix_product(key.second.high ^ seed_, key.second.low));
}

std::uint32_t HostMemory::Parts::find(Shard& shard, std::uint64_t hash, const HostKey& key) noexcept {
  std::uint32_t record = bucket(shard, hash);
  while (record != 0 && shard.records[record].key != key) record = shard.records[record].chain;
  return record;
}

std::uint32_t HostMemory::Parts::make(Shard& shard, std::uint64_t hash, const HostKey& key) noexcept {
  if (shard.free == 0 && shard.handed_out == capacity_) {
    const std::uint32_t oldest = shard.oldest;
    remove(shard, this->hash(shard.records[oldest].key), oldest);
    ++shard.evicted;
  }
  std::uint32_t record = shard.free;
  if (record != 0) {
    shard.free = shard.records[record].chain;
  } else {
    record = ++shard.handed_out;
  }
  Record& made = shard.records[record];
  made.key = key;
  std::uint32_t& first = bucket(shard, hash);
  made.chain = first;
  first = record;
  link_use(shard, record);
  ++shard.in_use;
  return record;
}

HostMemory::Parts::Found HostMemory::Parts::find_or_make(Shard& shard, std::uint64_t hash,
                                                         const HostKey& key) noexcept {
  if (const std::uint32_t found = find(shard, hash, key)) {
    use(shard, found);
    return {found, false};
  }
  return {make(shard, hash, key), true};
}

void HostMemory::Parts::remove(Shard& shard, std::uint64_t hash, std::uint32_t record) noexcept {
  std::uint32_t* link = &bucket(shard, hash);
  while (*link != record) link = &shard.records[*link].chain;
  Record& removed = shard.records[record];
  *link = removed.chain;
  unlink_use(shard, record);
  if (removed.key.kind == HostRecordKind::tag) tags_.fetch_sub(1, std::memory_order_relaxed);
  removed.chain = shard.free;
  shard.free = record;
  --shard.in_use;
}

void HostMemory::Parts::use(Shard& shard, std::uint32_t record) noexcept {
  if (shard.newest == record) return;
  unlink_use(shard, record);
  link_use(shard, record);
}

void HostMemory::Parts::unlink_use(Shard& shard, std::uint32_t record) noexcept {
  const Record& unlinked = shard.records[record];
  (unlinked.newer != 0 ? shard.records[unlinked.newer].older : shard.newest) = unlinked.older;
  (unlinked.older != 0 ? shard.records[unlinked.older].newer : shard.oldest) = unlinked.newer;
}

void HostMemory::Parts::link_use(Shard& shard, std::uint32_t record) noexcept {
  Record& linked = shard.records[record];
  linked.newer = 0;
  linked.older = shard.newest;
  (shard.newest != 0 ? shard.records[shard.newest].newer : shard.oldest) = record;
  shard.newest = record;
}

Counted HostMemory::Parts::count(const HostKey& key, const Threshold& threshold, std::uint64_t now_us) noexcept {
  const std::uint64_t hashed = hash(key);
  Shard& in = shard(hashed);
  const Guard guard(in.lock);
  const auto [record, made] = find_or_make(in, hashed, key);
  ThresholdCount& count = in.records[record].threshold;
  return made ? count_first(threshold, count, now_us) : count_next(threshold, count, now_us);
}

bool HostMemory::Parts::bit(const HostKey& key, std::uint64_t now_us) noexcept {
  const std::uint64_t hashed = hash(key);
  Shard& in = shard(hashed);
  const Guard guard(in.lock);
  const std::uint32_t record = find(in, hashed, key);
  if (record == 0) return false;
  if (in.records[record].expires_us < now_us) {
    remove(in, hashed, record);
    return false;
  }
  use(in, record);
  return true;
}

void HostMemory::Parts::change_bit(const HostKey& key, XbitsChange::How how, std::uint64_t expires_us) noexcept {
  const std::uint64_t hashed = hash(key);
  Shard& in = shard(hashed);
  const Guard guard(in.lock);
  if (const std::uint32_t record = find(in, hashed, key)) {
    if (how == XbitsChange::How::set) {
      use(in, record);
    } else {
      remove(in, hashed, record);
    }
  } else if (how != XbitsChange::How::unset) {
    in.records[make(in, hashed, key)].expires_us = expires_us;
  }
}

void HostMemory::Parts::tag(const HostKey& key, const Tag& tag, std::uint64_t now_s) noexcept {
  const std::uint64_t hashed = hash(key);
  Shard& in = shard(hashed);
  const Guard guard(in.lock);
  unsigned tags = 0;
  HostKey of_host = key;
  for (std::uint32_t i = bucket(in, hashed); i != 0; i = in.records[i].chain) {
    Record& record = in.records[i];
    of_host.index = record.key.index;
    if (record.key != of_host) continue;
    ++tags;
    if (record.key.index != key.index) continue;
    record.tag.renew(now_s);
    use(in, i);
    return;
  }
  if (tags >= kMostTags) return;
  in.records[make(in, hashed, key)].tag = TagEntry::of(tag, now_s);
  tags_.fetch_add(1, std::memory_order_relaxed);
}

bool HostMemory::Parts::tagged(const HostKey& key, std::uint64_t now_s, std::uint32_t bytes) noexcept {
  const std::uint64_t hashed = hash(key);
  Shard& in = shard(hashed);
  const Guard guard(in.lock);
  bool logged = false;
  HostKey of_host = key;
  for (std::uint32_t i = bucket(in, hashed); i != 0;) {
    const std::uint32_t next = in.records[i].chain;
    Record& record = in.records[i];
    of_host.index = record.key.index;
    if (record.key == of_host) {
      switch (record.tag.packet(now_s, bytes)) {
        case TagEntry::Says::not_this_one: use(in, i); break;
        case TagEntry::Says::log:
          logged = true;
          use(in, i);
          break;
        case TagEntry::Says::ended: remove(in, hashed, i); break;
      }
    }
    i = next;
  }
  return logged;
}

HostMemory::Counters HostMemory::Parts::counters() noexcept {
  Counters sum;
  for (Shard& one : shards_) {
    const Guard guard(one.lock);
    sum.records += one.in_use;
    sum.evicted += one.evicted;
  }
  return sum;
}

}  // namespace penstock::nids
