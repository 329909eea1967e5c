// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The implementation of HostMemory: a hash table of small records (a threshold's count, an xbit, a tag), divided into
// shards with one lock each. A shard's records are one array: first handed out in order, then from a free list, then by
// evicting the least recently used. Only the constructor allocates, and memory that was never used was never touched.

#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "nf/nids/detect/state_store.h"
#include "nf/nids/detect/tag_entry.h"
#include "nf/nids/detect/threshold_count.h"
#include "stack/decoded_packet.h"

namespace penstock::nids {

enum class HostRecordKind : std::uint8_t { threshold, xbit, tag };

/// Identifies a record by its owner and subject.
struct HostKey {
  Ipv6Address first, second;    // `second` only for pairs; both zero: all hosts
  std::uint32_t index = 0;      // of the rule or the xbit
  std::uint8_t ip_version = 0;  // 0: all hosts
  bool pair = false;
  HostRecordKind kind = HostRecordKind::threshold;
  friend bool operator==(const HostKey&, const HostKey&) = default;
};

/// The same key for both directions.
[[nodiscard]] HostKey pair_key(const stack::DecodedPacket& packet, HostRecordKind kind, std::uint32_t index) noexcept;
[[nodiscard]] HostKey host_key(const stack::DecodedPacket& packet, bool source, HostRecordKind kind,
                               std::uint32_t index) noexcept;
[[nodiscard]] HostKey common_key(HostRecordKind kind, std::uint32_t index) noexcept;

struct HostMemory::Parts {
  explicit Parts(std::size_t most_bytes);

  [[nodiscard]] Counted count(const HostKey& key, const Threshold& threshold, std::uint64_t now_us) noexcept;

  /// An expired bit is removed only when it is read. Until then it cannot be set again, and setting a bit that is set
  /// does not renew it (as in Suricata).
  [[nodiscard]] bool bit(const HostKey& key, std::uint64_t now_us) noexcept;
  void change_bit(const HostKey& key, XbitsChange::How how, std::uint64_t expires_us) noexcept;

  /// `key.index`: index of the rule.
  void tag(const HostKey& key, const Tag& tag, std::uint64_t now_s) noexcept;
  /// Counts one more packet of the host; `key.index` is ignored. True if one of its tags wants it logged.
  [[nodiscard]] bool tagged(const HostKey& key, std::uint64_t now_s, std::uint32_t bytes) noexcept;
  [[nodiscard]] bool has_tags() const noexcept { return tags_.load(std::memory_order_relaxed) != 0; }

  [[nodiscard]] Counters counters() noexcept;
  [[nodiscard]] std::size_t capacity() const noexcept { return shards_.size() * capacity_; }

 private:
  struct Record {
    HostKey key;
    union {
      ThresholdCount threshold;
      std::uint64_t expires_us;
      TagEntry tag;
    };
    std::uint32_t chain;         // next in its bucket, or in the free list
    std::uint32_t newer, older;  // list by last use
  };
  struct alignas(64) Shard {
    std::mutex lock;
    Record* records = nullptr;  // indices start at 1; 0 is null
    std::uint32_t* buckets = nullptr;
    std::uint32_t handed_out = 0, free = 0;
    std::uint32_t newest = 0, oldest = 0;
    std::uint64_t in_use = 0, evicted = 0;
  };
  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
  struct Found {
    std::uint32_t record;
    bool made;
  };

  [[nodiscard]] std::uint64_t hash(const HostKey& key) const noexcept;
  [[nodiscard]] Shard& shard(std::uint64_t hash) noexcept { return shards_[hash >> 32 & (shards_.size() - 1)]; }
  [[nodiscard]] std::uint32_t& bucket(Shard& shard, std::uint64_t hash) const noexcept {
    return shard.buckets[hash & bucket_mask_];
  }
  [[nodiscard]] std::uint32_t find(Shard& shard, std::uint64_t hash, const HostKey& key) noexcept;
  [[nodiscard]] std::uint32_t make(Shard& shard, std::uint64_t hash, const HostKey& key) noexcept;
  [[nodiscard]] Found find_or_make(Shard& shard, std::uint64_t hash, const HostKey& key) noexcept;
  void remove(Shard& shard, std::uint64_t hash, std::uint32_t record) noexcept;
  void use(Shard& shard, std::uint32_t record) noexcept;
  void unlink_use(Shard& shard, std::uint32_t record) noexcept;
  void link_use(Shard& shard, std::uint32_t record) noexcept;

  std::vector<Shard> shards_;
  std::unique_ptr<Record[], Free> records_;
  std::unique_ptr<std::uint32_t[], Free> buckets_;
  std::uint32_t capacity_ = 0;  // of each shard
  std::uint64_t bucket_mask_ = 0;
  std::uint64_t seed_;
  std::atomic<std::uint64_t> tags_ = 0;
};

}  // namespace penstock::nids
