// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/fragment_memory.h"

#include <algorithm>
#include <bit>

#include "base/keyed_hash.h"
#include "base/nanoseconds.h"

namespace penstock::stack {

DatagramKey datagram_key(std::uint32_t id, const DecodedPacket& packet) noexcept {
  const Ipv6Address &source = packet.source.address, &destination = packet.destination.address;
  DatagramKey key{};
  key.addresses = {source.high, source.low, destination.high, destination.low};
  key.id = id;
  key.vlan_ids = packet.vlan_ids;
  key.ip_version = packet.ip_version;
  key.protocol = packet.ip_version == 4 ? packet.protocol : 0;
  return key;
}

FragmentMemory::FragmentMemory(const TrackerOptions& options, TrackerCounters& told)
    : timeout_ns_(std::uint64_t{options.fragment_timeout_s} * kNsPerSecond),
      refuse_when_full_(options.refuse_when_full),
      counters_(told),
      seed_(random_seed()),
      shares_(kShares, 0),
      datagrams_of_(kShares, 0) {
  constexpr std::size_t kBytesForEach = 512;  // per datagram; a third is the Datagram with the smallest fragments
  const std::size_t most = std::max<std::size_t>(options.fragment_memory / kBytesForEach, 1);
  const std::size_t of_datagrams = most * sizeof(Datagram);
  const std::size_t of_blocks =
      options.fragment_memory > of_datagrams ? options.fragment_memory - of_datagrams : sizeof(Block);
  most_datagrams_ = static_cast<std::uint32_t>(std::min<std::size_t>(most, kNone - 1));
  most_blocks_ = static_cast<std::uint32_t>(std::min<std::size_t>(of_blocks / sizeof(Block), kNone - 1));
  datagrams_ = std::make_unique_for_overwrite<Datagram[]>(most_datagrams_);
  blocks_ = std::make_unique_for_overwrite<Block[]>(most_blocks_);
  buckets_.assign(std::bit_ceil(std::size_t{most_datagrams_}), kNone);
}

std::size_t FragmentMemory::bytes() const noexcept {
  return most_datagrams_ * sizeof(Datagram) + std::size_t{most_blocks_} * sizeof(Block) +
         (buckets_.size() + 2 * shares_.size()) * sizeof(std::uint32_t);
}

// ---- Datagrams: in buckets by key, and in lists from oldest to newest

std::size_t FragmentMemory::bucket_of(const DatagramKey& key) const noexcept {
  std::uint64_t hash = seed_;
  const auto vlans = std::bit_cast<std::array<std::uint64_t, 2>>(key.vlan_ids);
  for (const std::uint64_t word :
       {key.addresses[0], key.addresses[1], key.addresses[2], key.addresses[3],
        std::uint64_t{key.id} << 32 | std::uint64_t{key.ip_version} << 8 | key.protocol, vlans[0], vlans[1]}) {
    hash = mix_product(hash, word);
  }
  return hash & (buckets_.size() - 1);
}

// IPv6: only the network prefix counts, because a host can use any number of addresses.
std::uint16_t FragmentMemory::source_of(const DatagramKey& key) const noexcept {
  const std::uint64_t low = key.ip_version == 4 ? key.addresses[1] : 0;
  return static_cast<std::uint16_t>(mix_product(mix_product(seed_, key.addresses[0]), low) % kShares);
}

std::uint32_t FragmentMemory::find(const DatagramKey& key) const noexcept {
  std::uint32_t index = buckets_[bucket_of(key)];
  while (index != kNone && datagrams_[index].key != key) index = datagrams_[index].next_in_bucket;
  return index;
}

void FragmentMemory::enlist(std::uint32_t index, List list) noexcept {
  Queue& to = lists_[list];
  Datagram& datagram = datagrams_[index];
  datagram.list = list;
  datagram.older = to.newest;
  datagram.newer = kNone;
  (to.newest != kNone ? datagrams_[to.newest].newer : to.oldest) = index;
  to.newest = index;
  ++to.count;
}

void FragmentMemory::delist(std::uint32_t index) noexcept {
  const Datagram& datagram = datagrams_[index];
  Queue& from = lists_[datagram.list];
  (datagram.older != kNone ? datagrams_[datagram.older].newer : from.oldest) = datagram.newer;
  (datagram.newer != kNone ? datagrams_[datagram.newer].older : from.newest) = datagram.older;
  --from.count;
}

void FragmentMemory::move_to(std::uint32_t index, List list) noexcept {
  delist(index);
  enlist(index, list);
}

std::uint32_t FragmentMemory::make(const DatagramKey& key, std::uint64_t now_ns) noexcept {
  const std::uint16_t source = source_of(key);
  // Refused datagrams stay in the table, so limit those of one source to leave room for others.
  if (refuse_when_full_ && datagrams_of_[source] >= std::max(most_datagrams_ / 8, 1U)) expire(now_ns);
  if (refuse_when_full_ && datagrams_of_[source] >= std::max(most_datagrams_ / 8, 1U)) return kNone;
  if (free_datagram_ == kNone && datagrams_touched_ == most_datagrams_) expire(now_ns);
  if (free_datagram_ == kNone && datagrams_touched_ == most_datagrams_) {
    if (refuse_when_full_ || !give_up_one(source, kNone, now_ns)) return kNone;
  }
  std::uint32_t index = free_datagram_;
  if (index != kNone) {
    free_datagram_ = datagrams_[index].next_in_bucket;
  } else {
    index = datagrams_touched_++;
  }
  std::uint32_t& bucket = buckets_[bucket_of(key)];
  Datagram& datagram = datagrams_[index] = Datagram{};
  datagram.key = key;
  datagram.last_ns = now_ns;
  datagram.next_in_bucket = bucket;
  datagram.first = datagram.last = datagram.last_end = kNone;
  datagram.coverage.fill(kNone);
  datagram.source = source;
  bucket = index;
  ++datagrams_of_[source];
  enlist(index, kWaiting);
  return index;
}

void FragmentMemory::free_fragments(Datagram& datagram) noexcept {
  forget_seen(datagram);
  while (datagram.first != kNone) drop_oldest_fragment(datagram);
}

void FragmentMemory::remove(std::uint32_t index) noexcept {
  Datagram& datagram = datagrams_[index];
  free_fragments(datagram);
  delist(index);
  --datagrams_of_[datagram.source];
  std::uint32_t* link = &buckets_[bucket_of(datagram.key)];
  while (*link != index) link = &datagrams_[*link].next_in_bucket;
  *link = datagram.next_in_bucket;
  datagram.next_in_bucket = free_datagram_;
  free_datagram_ = index;
}

void FragmentMemory::refuse(std::uint32_t index) noexcept {
  free_fragments(datagrams_[index]);
  move_to(index, kRefused);
}

// ---- Eviction

/// The datagram to evict. A source that exceeds its share loses its own; otherwise the oldest of other such sources, or
/// the oldest of all.
std::uint32_t FragmentMemory::victim(std::uint16_t newcomer, std::uint32_t but) const noexcept {
  const bool is_own_fault = is_greedy(newcomer);
  std::uint32_t oldest = kNone;
  for (const List list : {kDone, kWaiting}) {
    std::uint32_t index = lists_[list].oldest;
    for (std::uint32_t looked_at = 0; index != kNone && looked_at < kMostLookedAt; ++looked_at) {
      const Datagram& datagram = datagrams_[index];
      if (index != but) {
        if (is_own_fault ? datagram.source == newcomer : is_greedy(datagram.source)) return index;
        if (oldest == kNone) oldest = index;
      }
      index = datagram.newer;
    }
  }
  return oldest;
}

// Fragments that have passed wait at the receiver and could be completed there, so if refuse_when_full is set, no
// further fragment of an evicted datagram may pass.
bool FragmentMemory::give_up_one(std::uint16_t newcomer, std::uint32_t but, std::uint64_t now_ns) noexcept {
  const std::uint32_t index = victim(newcomer, but);
  if (index == kNone) return false;
  if (timed_out(datagrams_[index], now_ns)) {
    time_out(index);
    return true;
  }
  if (!datagrams_[index].done) {
    counters_.fragments_dropped += datagrams_[index].fragments;
    counters_.fragment_memory_refused += datagrams_[index].fragments;
  }
  if (refuse_when_full_) {
    refuse(index);
  } else {
    remove(index);
  }
  return true;
}

bool FragmentMemory::make_room(std::uint32_t blocks, std::uint32_t but, std::uint64_t now_ns) noexcept {
  while (most_blocks_ - blocks_in_use_ < blocks) {
    if (!give_up_one(datagrams_[but].source, but, now_ns)) return false;
  }
  return true;
}

void FragmentMemory::time_out(std::uint32_t index) noexcept {
  if (!datagrams_[index].done) counters_.fragments_timed_out += datagrams_[index].fragments;
  remove(index);
}

void FragmentMemory::expire(std::uint64_t now_ns) noexcept {
  for (const Queue& list : lists_) {
    while (list.oldest != kNone && timed_out(datagrams_[list.oldest], now_ns)) time_out(list.oldest);
  }
}

// ---- Blocks: freed ones are reused before untouched ones

std::uint32_t FragmentMemory::take_block(Datagram& datagram) noexcept {
  ++blocks_in_use_;
  ++datagram.blocks;
  ++shares_[datagram.source];
  if (free_block_ == kNone) return blocks_touched_++;
  const std::uint32_t block = free_block_;
  free_block_ = blocks_[block].next;
  return block;
}

void FragmentMemory::give_back(Datagram& datagram, std::uint32_t first_block) noexcept {
  while (first_block != kNone) {
    const std::uint32_t next = blocks_[first_block].next;
    blocks_[first_block].next = free_block_;
    free_block_ = first_block;
    --blocks_in_use_;
    --datagram.blocks;
    --shares_[datagram.source];
    first_block = next;
  }
}

std::uint32_t FragmentMemory::store(Datagram& datagram, FragmentRecord record, Bytes header, Bytes data) noexcept {
  const std::uint32_t first = take_block(datagram);
  record.next = kNone;
  std::memcpy(blocks_[first].bytes.data(), &record, sizeof(record));
  std::uint32_t block = first;
  std::size_t at = sizeof(FragmentRecord);
  for (Bytes part : {header, data}) {
    while (!part.empty()) {
      if (at == kBlockBytes) {
        const std::uint32_t next = take_block(datagram);
        blocks_[block].next = next;
        block = next;
        at = 0;
      }
      const std::size_t count = std::min(part.size(), kBlockBytes - at);
      std::memcpy(blocks_[block].bytes.data() + at, part.data(), count);
      at += count;
      part = part.subspan(count);
    }
  }
  blocks_[block].next = kNone;
  if (datagram.last == kNone) {
    datagram.first = first;
  } else {
    FragmentRecord before = this->record(datagram.last);
    before.next = first;
    std::memcpy(blocks_[datagram.last].bytes.data(), &before, sizeof(before));
  }
  datagram.last = first;
  ++datagram.fragments;
  datagram.stored += record.header_bytes + (record.end - record.begin);
  return first;
}

void FragmentMemory::drop_oldest_fragment(Datagram& datagram) noexcept {
  const FragmentRecord oldest = record(datagram.first);
  give_back(datagram, datagram.first);
  datagram.first = oldest.next;
  if (datagram.first == kNone) datagram.last = kNone;
  --datagram.fragments;
  datagram.stored -= oldest.header_bytes + (oldest.end - oldest.begin);
}

// ---- Coverage

namespace {
constexpr std::uint32_t kUnitsOfBlock = 252 * 8;
}

std::uint32_t FragmentMemory::coverage_blocks_for(const Datagram& datagram, std::uint32_t begin,
                                                  std::uint32_t end) const noexcept {
  std::uint32_t blocks = 0;
  for (std::uint32_t i = begin / 8 / kUnitsOfBlock; i <= end / 8 / kUnitsOfBlock; ++i) {
    if (datagram.coverage[i] == kNone) ++blocks;
  }
  return blocks;
}

std::uint8_t* FragmentMemory::coverage_of(Datagram& datagram, std::uint32_t unit) noexcept {
  std::uint32_t& block = datagram.coverage[unit / kUnitsOfBlock];
  if (block == kNone) {
    block = take_block(datagram);
    blocks_[block].next = kNone;
    blocks_[block].bytes.fill(0);
  }
  return &blocks_[block].bytes[unit % kUnitsOfBlock / 8];
}

bool FragmentMemory::may_overlap(const Datagram& datagram, std::uint32_t begin, std::uint32_t end) const noexcept {
  if (begin >= datagram.end) return false;
  if (datagram.tail_seen) return true;  // bytes that the unit bitmap does not cover
  for (std::uint32_t unit = begin / 8; unit < (end + 7) / 8; ++unit) {
    const std::uint32_t block = datagram.coverage[unit / kUnitsOfBlock];
    if (block != kNone && (blocks_[block].bytes[unit % kUnitsOfBlock / 8] >> unit % 8 & 1) != 0) return true;
  }
  return false;
}

bool FragmentMemory::mark_seen(Datagram& datagram, std::uint32_t begin, std::uint32_t end, bool more) noexcept {
  const std::uint32_t former_end = datagram.end;
  const bool ends_in_unit = end % 8 != 0;
  const auto seen = [&](std::uint32_t unit) { return (*coverage_of(datagram, unit) >> unit % 8 & 1) != 0; };
  bool again = (former_end % 8 != 0 && begin < former_end && end > former_end - former_end % 8) ||
               (ends_in_unit && seen(end / 8));
  for (std::uint32_t unit = begin / 8; unit < end / 8; ++unit) {
    if (seen(unit)) {
      again = true;
    } else {
      *coverage_of(datagram, unit) |= static_cast<std::uint8_t>(1U << unit % 8);
      ++datagram.whole_units;
    }
  }
  datagram.end = std::max(former_end, end);
  // Only the datagram's last unit may be partial. If there is another partial unit, all bytes are compared in the end.
  const bool odd =
      (ends_in_unit && (more || datagram.tail_seen || end < former_end)) || (former_end % 8 != 0 && end > former_end);
  datagram.tail_seen = datagram.tail_seen || ends_in_unit;
  datagram.last_seen = datagram.last_seen || !more;
  if (!more) datagram.last_end = end;
  datagram.overlapped = datagram.overlapped || again || odd;
  return again;
}

void FragmentMemory::forget_seen(Datagram& datagram) noexcept {
  for (std::uint32_t& block : datagram.coverage) {
    give_back(datagram, block);
    block = kNone;
  }
  datagram.end = datagram.whole_units = 0;
  datagram.last_end = kNone;
  datagram.last_seen = datagram.tail_seen = false;
}

}  // namespace penstock::stack
