// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/ip_reassembly.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/keyed_hash.h"
#include "packet/checksum.h"
#include "packet/ip.h"

namespace penstock::stack {

namespace {

constexpr std::uint32_t kNone = 0xffffffff;
constexpr std::size_t kMostData = 0xffff;                   // of a datagram, without its header
constexpr std::uint32_t kMostFragments = 8192;              // of a datagram: as many units of 8 bytes as it can have
constexpr std::uint32_t kMostStored = 4 * (kMostData + 1);  // bytes of a datagram's fragments, overlapping ones too

/// RFC 791: protocol too. RFC 8200 §4.5: without it.
struct Key {
  std::array<std::uint64_t, 4> addresses;
  std::uint32_t id;
  VlanIds vlan_ids;
  std::uint8_t ip_version, protocol;
  friend bool operator==(const Key&, const Key&) = default;
};

struct Datagram {
  Key key;
  std::uint64_t last_ns;
  std::uint32_t next_in_bucket, older, newer;  // datagrams
  std::uint32_t first, last;                   // fragments, in order of arrival
  std::uint32_t fragments, stored;
  std::uint32_t end;                          // of what was seen
  std::uint32_t whole_units;                  // of 8 bytes, seen from their first to their last byte
  std::array<std::uint64_t, 128> seen_units;  // a bit each
  bool last_seen;                             // the fragment behind which there are none
  bool tail_seen;                             // one that does not end at a unit's end
  bool overlapped;                            // or so odd that the units do not tell
  bool refused;                               // nothing of it is kept
};
static_assert(std::is_trivial_v<Datagram>, "their memory is not touched before they are used");

Key key_of(std::uint32_t id, const DecodedPacket& packet) noexcept {
  const Ipv6Address &source = packet.source.address, &destination = packet.destination.address;
  Key key{};
  key.addresses = {source.high, source.low, destination.high, destination.low};
  key.id = id;
  key.vlan_ids = packet.vlan_ids;
  key.ip_version = packet.ip_version;
  key.protocol = packet.ip_version == 4 ? packet.protocol : 0;
  return key;
}

/// The block with which a fragment begins has this in front of the bytes.
struct FragmentRecord {
  std::uint32_t next;  // fragment: its first block
  std::uint32_t begin, end;
  std::uint32_t header_bytes, next_header_at;
  std::uint8_t next_header;
  bool more;
};

struct Block {
  std::uint32_t next;
  std::array<std::uint8_t, 252> bytes;
};
static_assert(std::is_trivial_v<Block> && sizeof(Block) == 256);

/// Whether the later of two fragments that both have a byte is the one whose byte is kept.
bool later_wins(OverlapPolicy policy, const FragmentRecord& earlier, const FragmentRecord& later) noexcept {
  switch (policy) {
    case OverlapPolicy::first: return false;
    case OverlapPolicy::last: return true;
    case OverlapPolicy::bsd: return later.begin < earlier.begin;
    case OverlapPolicy::bsd_right: return later.begin >= earlier.begin;
    case OverlapPolicy::linux_host: return later.begin <= earlier.begin;
    case OverlapPolicy::windows: return later.begin < earlier.begin && later.end > earlier.end;
    case OverlapPolicy::solaris: return later.begin < earlier.begin && later.end >= earlier.end;
  }
  return false;
}

}  // namespace

struct IpReassembly::Parts {
  Parts(const TrackerOptions& options, TrackerCounters& told)
      : policy(options.fragment_policy),
        timeout_ns(std::uint64_t{options.fragment_timeout_s} * 1'000'000'000),
        refuse_when_full(options.refuse_when_full),
        counters(told),
        seed(random_seed()) {
    constexpr std::size_t kBytesForEach = 4096;
    const std::size_t most = std::max<std::size_t>(options.fragment_memory / kBytesForEach, 1);
    const std::size_t of_datagrams = most * sizeof(Datagram);
    const std::size_t of_blocks =
        options.fragment_memory > of_datagrams ? options.fragment_memory - of_datagrams : sizeof(Block);
    most_datagrams = static_cast<std::uint32_t>(std::min<std::size_t>(most, kNone - 1));
    most_blocks = static_cast<std::uint32_t>(std::min<std::size_t>(of_blocks / sizeof(Block), kNone - 1));
    datagrams = std::make_unique_for_overwrite<Datagram[]>(most_datagrams);
    blocks = std::make_unique_for_overwrite<Block[]>(most_blocks);
    buckets.assign(std::bit_ceil(std::size_t{most_datagrams}), kNone);
    order.reserve(kMostFragments);
  }

  // ---- blocks: those that were given back, then those that were never used

  [[nodiscard]] std::uint32_t blocks_left() const noexcept { return most_blocks - blocks_in_use; }
  std::uint32_t take_block() noexcept {
    ++blocks_in_use;
    if (free_block == kNone) return blocks_touched++;
    const std::uint32_t block = free_block;
    free_block = blocks[block].next;
    return block;
  }
  void give_back(std::uint32_t first_block) noexcept {
    while (first_block != kNone) {
      const std::uint32_t next = blocks[first_block].next;
      blocks[first_block].next = free_block;
      free_block = first_block;
      --blocks_in_use;
      first_block = next;
    }
  }

  // ---- fragments

  static constexpr std::size_t blocks_for(std::size_t bytes) noexcept {
    return (sizeof(FragmentRecord) + bytes + sizeof(Block::bytes) - 1) / sizeof(Block::bytes);
  }
  [[nodiscard]] FragmentRecord record(std::uint32_t fragment) const noexcept {
    FragmentRecord record;
    std::memcpy(&record, blocks[fragment].bytes.data(), sizeof(record));
    return record;
  }
  void set_record(std::uint32_t fragment, const FragmentRecord& record) noexcept {
    std::memcpy(blocks[fragment].bytes.data(), &record, sizeof(record));
  }

  /// There must be blocks for it.
  std::uint32_t store(const FragmentRecord& record, Bytes header, Bytes data) noexcept {
    const std::uint32_t first = take_block();
    std::uint32_t block = first;
    std::size_t at = sizeof(FragmentRecord);
    set_record(first, record);
    for (Bytes part : {header, data}) {
      while (!part.empty()) {
        if (at == sizeof(Block::bytes)) {
          const std::uint32_t next = take_block();
          blocks[block].next = next;
          block = next;
          at = 0;
        }
        const std::size_t count = std::min(part.size(), sizeof(Block::bytes) - at);
        std::memcpy(blocks[block].bytes.data() + at, part.data(), count);
        at += count;
        part = part.subspan(count);
      }
    }
    blocks[block].next = kNone;
    return first;
  }

  /// Calls `use(position, bytes)` for the bytes behind the record, piece by piece: positions from 0, the header first.
  template <typename Use>
  void read(std::uint32_t fragment, const FragmentRecord& record, Use&& use) const noexcept {
    std::size_t left = record.header_bytes + record.end - record.begin;
    std::size_t at = sizeof(FragmentRecord), position = 0;
    for (std::uint32_t block = fragment; left > 0; block = blocks[block].next, at = 0) {
      const std::size_t count = std::min(left, sizeof(Block::bytes) - at);
      use(position, Bytes{blocks[block].bytes.data() + at, count});
      position += count;
      left -= count;
    }
  }
  /// The same for its data; positions are those in the datagram.
  template <typename Use>
  void read_data(std::uint32_t fragment, const FragmentRecord& record, Use&& use) const noexcept {
    read(fragment, record, [&](std::size_t position, Bytes bytes) {
      if (position + bytes.size() <= record.header_bytes) return;
      if (position < record.header_bytes) {
        bytes = bytes.subspan(record.header_bytes - position);
        position = record.header_bytes;
      }
      use(record.begin + position - record.header_bytes, bytes);
    });
  }

  // ---- datagrams: in buckets by key, and in a list from the oldest to the newest

  [[nodiscard]] std::size_t bucket_of(const Key& key) const noexcept {
    std::uint64_t hash = seed;
    const auto vlans = std::bit_cast<std::array<std::uint64_t, 2>>(key.vlan_ids);
    for (const std::uint64_t word :
         {key.addresses[0], key.addresses[1], key.addresses[2], key.addresses[3],
          std::uint64_t{key.id} << 32 | std::uint64_t{key.ip_version} << 8 | key.protocol, vlans[0], vlans[1]}) {
      hash = mix_product(hash, word);
    }
    return hash & (buckets.size() - 1);
  }
  [[nodiscard]] std::uint32_t find(const Key& key) const noexcept {
    std::uint32_t datagram = buckets[bucket_of(key)];
    while (datagram != kNone && datagrams[datagram].key != key) datagram = datagrams[datagram].next_in_bucket;
    return datagram;
  }
  void unlink_from_list(std::uint32_t index) noexcept {
    const Datagram& datagram = datagrams[index];
    (datagram.older != kNone ? datagrams[datagram.older].newer : oldest) = datagram.newer;
    (datagram.newer != kNone ? datagrams[datagram.newer].older : newest) = datagram.older;
  }
  void append_to_list(std::uint32_t index) noexcept {
    datagrams[index].older = newest;
    datagrams[index].newer = kNone;
    (newest != kNone ? datagrams[newest].newer : oldest) = index;
    newest = index;
  }

  std::uint32_t make(const Key& key) noexcept {
    if (waiting == most_datagrams) drop_oldest();
    std::uint32_t index = free_datagram;
    if (index != kNone) {
      free_datagram = datagrams[index].next_in_bucket;
    } else {
      index = datagrams_touched++;
    }
    std::uint32_t& bucket = buckets[bucket_of(key)];
    datagrams[index] = Datagram{};
    datagrams[index].key = key;
    datagrams[index].next_in_bucket = bucket;
    datagrams[index].first = datagrams[index].last = kNone;
    bucket = index;
    append_to_list(index);
    ++waiting;
    return index;
  }
  void remove(std::uint32_t index) noexcept {
    Datagram& datagram = datagrams[index];
    for (std::uint32_t fragment = datagram.first; fragment != kNone;) {
      const std::uint32_t next = record(fragment).next;
      give_back(fragment);
      fragment = next;
    }
    unlink_from_list(index);
    std::uint32_t* link = &buckets[bucket_of(datagram.key)];
    while (*link != index) link = &datagrams[*link].next_in_bucket;
    *link = datagram.next_in_bucket;
    datagram.next_in_bucket = free_datagram;
    free_datagram = index;
    --waiting;
  }
  void drop_oldest() noexcept {
    counters.fragments_dropped += datagrams[oldest].fragments;
    counters.fragment_memory_refused += datagrams[oldest].fragments;
    remove(oldest);
  }
  /// Gives up the oldest for the sake of another. Not where a datagram's fragments that have passed may be followed by
  /// the rest: unless it has waited long enough, false.
  [[nodiscard]] bool make_way(std::uint64_t now_ns) noexcept {
    if (timed_out(datagrams[oldest], now_ns)) {
      time_out(oldest);
    } else if (refuse_when_full) {
      return false;
    } else {
      drop_oldest();
    }
    return true;
  }
  [[nodiscard]] bool timed_out(const Datagram& datagram, std::uint64_t now_ns) const noexcept {
    return now_ns > datagram.last_ns && now_ns - datagram.last_ns > timeout_ns;
  }
  void time_out(std::uint32_t index) noexcept {
    counters.fragments_timed_out += datagrams[index].fragments;
    remove(index);
  }

  // ---- what was seen of a datagram

  /// Notes the bytes from `begin` to `end`; tells whether any of them were seen before.
  static bool mark_seen(Datagram& datagram, std::uint32_t begin, std::uint32_t end, bool more) noexcept {
    const std::uint32_t former_end = datagram.end;
    const bool ends_in_unit = end % 8 != 0;
    const auto seen = [&](std::uint32_t unit) { return (datagram.seen_units[unit / 64] >> unit % 64 & 1) != 0; };
    bool again = (former_end % 8 != 0 && begin < former_end && end > former_end - former_end % 8) ||
                 (ends_in_unit && seen(end / 8));
    for (std::uint32_t unit = begin / 8; unit < end / 8; ++unit) {
      if (seen(unit)) {
        again = true;
      } else {
        datagram.seen_units[unit / 64] |= std::uint64_t{1} << unit % 64;
        ++datagram.whole_units;
      }
    }
    datagram.end = std::max(former_end, end);
    // Of units in part only the datagram's last is known: with another, all bytes are looked at in the end.
    const bool odd =
        (ends_in_unit && (more || datagram.tail_seen || end < former_end)) || (former_end % 8 != 0 && end > former_end);
    datagram.tail_seen = datagram.tail_seen || ends_in_unit;
    datagram.overlapped = datagram.overlapped || again || odd;
    return again;
  }
  /// The last unit may be in part, of the fragment that ends there.
  static bool complete(const Datagram& datagram) noexcept {
    return datagram.last_seen && datagram.whole_units == datagram.end / 8;
  }

  // ---- the datagram, once it is complete

  /// The fragments that make it, in `order`: none behind the first that says that it is the last (what comes there is
  /// no host's). Returns how much data they have.
  std::uint32_t choose(const Datagram& datagram) noexcept {
    std::uint32_t last_begin = kNone;
    for (std::uint32_t fragment = datagram.first; fragment != kNone;) {
      const FragmentRecord r = record(fragment);
      if (!r.more) last_begin = std::min(last_begin, r.begin);
      fragment = r.next;
    }
    std::uint32_t length = 0;
    order.clear();
    for (std::uint32_t fragment = datagram.first; fragment != kNone;) {
      const FragmentRecord r = record(fragment);
      if (r.begin <= last_begin) {
        order.push_back({fragment, r});
        length = std::max(length, r.end);
      }
      fragment = r.next;
    }
    return length;
  }

  /// Copies the data to `out`; returns the place in `order` of the fragment whose header is the datagram's.
  std::size_t put_together(const Datagram& datagram, std::uint8_t* out, std::uint32_t length) noexcept {
    if (!datagram.overlapped) {
      std::size_t first = 0;
      for (std::size_t i = 0; i < order.size(); ++i) {
        if (order[i].record.begin == 0) first = i;
        read_data(order[i].block, order[i].record,
                  [&](std::size_t position, Bytes bytes) { std::memcpy(out + position, bytes.data(), bytes.size()); });
      }
      return first;
    }
    constexpr std::uint16_t kNobody = 0xffff;
    static_assert(kMostFragments < kNobody);
    owners.assign(length, kNobody);
    for (std::size_t i = 0; i < order.size(); ++i) {
      read_data(order[i].block, order[i].record, [&](std::size_t position, Bytes bytes) {
        for (const std::uint8_t byte : bytes) {
          std::uint16_t& owner = owners[position];
          if (owner == kNobody || later_wins(policy, order[owner].record, order[i].record)) {
            owner = static_cast<std::uint16_t>(i);
            out[position] = byte;
          }
          ++position;
        }
      });
    }
    return owners[0];
  }

  /// Header and data. Empty where they are more than a datagram can be.
  Bytes assemble(const Datagram& datagram, std::span<std::uint8_t> room) noexcept {
    const std::uint32_t length = choose(datagram);
    const bool ipv4 = datagram.key.ip_version == 4;
    // The data's place depends on the header's length, which depends on who has the first byte: their headers may
    // differ.
    std::uint8_t* const data = room.data() + room.size() - length;
    const std::size_t first = put_together(datagram, data, length);
    const FragmentRecord& record = order[first].record;
    const std::size_t header_bytes = record.header_bytes;
    if ((ipv4 ? header_bytes : header_bytes - sizeof(Ipv6Header)) + length > kMostData) return {};
    std::uint8_t* const header = data - header_bytes;
    read(order[first].block, record, [&](std::size_t position, Bytes bytes) {
      if (position >= header_bytes) return;
      std::memcpy(header + position, bytes.data(), std::min(bytes.size(), header_bytes - position));
    });
    const Bytes whole{header, header_bytes + length};
    if (ipv4) {
      auto& ip = *reinterpret_cast<Ipv4Header*>(header);
      // Not computed anew: one that was wrong stays so.
      std::uint16_t checksum = ip.checksum.value();
      checksum = checksum_update(checksum, ip.total_length.value(), static_cast<std::uint16_t>(whole.size()));
      ip.checksum.set(checksum_update(checksum, ip.fragment.value(), 0));
      ip.total_length.set(static_cast<std::uint16_t>(whole.size()));
      ip.fragment.set(0);
    } else {
      header[record.next_header_at] = record.next_header;
      reinterpret_cast<Ipv6Header*>(header)->payload_length.set(
          static_cast<std::uint16_t>(whole.size() - sizeof(Ipv6Header)));
    }
    return whole;
  }

  OverlapPolicy policy;
  std::uint64_t timeout_ns;
  bool refuse_when_full;
  TrackerCounters& counters;
  std::uint64_t seed;

  std::unique_ptr<Datagram[]> datagrams;
  std::unique_ptr<Block[]> blocks;
  std::vector<std::uint32_t> buckets;
  std::uint32_t most_datagrams = 0, most_blocks = 0;
  std::uint32_t datagrams_touched = 0, blocks_touched = 0;
  std::uint32_t free_datagram = kNone, free_block = kNone;
  std::uint32_t blocks_in_use = 0, waiting = 0;
  std::uint32_t oldest = kNone, newest = kNone;

  struct Chosen {
    std::uint32_t block;
    FragmentRecord record;
  };
  std::vector<Chosen> order;          // scratch, as the next
  std::vector<std::uint16_t> owners;  // place in `order`, by byte
};

IpReassembly::IpReassembly(const TrackerOptions& options, TrackerCounters& counters)
    : parts_(std::make_unique<Parts>(options, counters)) {
  parts_->owners.reserve(kMostData + 1);
}
IpReassembly::~IpReassembly() = default;

Bytes IpReassembly::add(const IpFragment& fragment, DecodedPacket& packet, std::span<std::uint8_t> room) noexcept {
  Parts& p = *parts_;
  const bool ipv4 = packet.ip_version == 4;
  const auto note = [&](DecodeEvent for_ipv4, DecodeEvent for_ipv6) {
    packet.events.set(ipv4 ? for_ipv4.index : for_ipv6.index);
  };
  ++p.counters.fragments;
  const std::size_t end = fragment.offset + fragment.data.size();
  if ((ipv4 ? sizeof(Ipv4Header) : 0) + end > kMostData) {
    note(decode_event("ipv4.frag_pkt_too_large"), decode_event("ipv6.frag_pkt_too_large"));
    ++p.counters.fragments_dropped;
    return {};
  }
  if (fragment.data.empty()) {
    ++p.counters.fragments_dropped;
    return {};
  }

  const Key key = key_of(fragment.id, packet);
  std::uint32_t index = p.find(key);
  if (index != kNone && p.timed_out(p.datagrams[index], packet.timestamp_ns)) {
    p.time_out(index);
    index = kNone;
  }
  if (index != kNone && p.datagrams[index].refused) {
    packet.refused = Refusal::fragment;
    ++p.counters.fragments_dropped;
    return {};
  }
  const auto no_room = [&]() -> Bytes {
    ++p.counters.fragments_dropped;
    ++p.counters.fragment_memory_refused;
    if (p.refuse_when_full) packet.refused = Refusal::fragment_memory;
    return {};
  };
  if (room.empty()) return no_room();
  if (index == kNone) {
    if (p.waiting == p.most_datagrams && !p.make_way(packet.timestamp_ns)) return no_room();
    index = p.make(key);
  } else {
    p.unlink_from_list(index);
    p.append_to_list(index);
  }

  const Bytes header = fragment.offset == 0 ? fragment.header : Bytes{};
  const std::size_t bytes = header.size() + fragment.data.size();
  const std::size_t blocks = Parts::blocks_for(bytes);
  while (p.blocks_left() < blocks && p.oldest != index && p.make_way(packet.timestamp_ns)) {
  }
  Datagram& datagram = p.datagrams[index];
  datagram.last_ns = packet.timestamp_ns;
  if (p.blocks_left() < blocks || datagram.fragments == kMostFragments || datagram.stored + bytes > kMostStored) {
    note(decode_event("ipv4.frag_ignored"), decode_event("ipv6.frag_ignored"));
    if (datagram.fragments == 0) p.remove(index);
    return no_room();
  }

  const FragmentRecord record{.next = kNone,
                              .begin = fragment.offset,
                              .end = static_cast<std::uint32_t>(end),
                              .header_bytes = static_cast<std::uint32_t>(header.size()),
                              .next_header_at = static_cast<std::uint32_t>(fragment.next_header_at),
                              .next_header = fragment.next_header,
                              .more = fragment.more};
  const std::uint32_t stored = p.store(record, header, fragment.data);
  if (datagram.last == kNone) {
    datagram.first = stored;
  } else {
    FragmentRecord before = p.record(datagram.last);
    before.next = stored;
    p.set_record(datagram.last, before);
  }
  datagram.last = stored;
  ++datagram.fragments;
  datagram.stored += static_cast<std::uint32_t>(bytes);
  if (!fragment.more) datagram.last_seen = true;
  if (Parts::mark_seen(datagram, record.begin, record.end, record.more)) {
    note(decode_event("ipv4.frag_overlap"), decode_event("ipv6.frag_overlap"));
  }
  if (!Parts::complete(datagram)) return {};

  const Bytes whole = p.assemble(datagram, room);
  if (whole.empty()) {
    p.counters.fragments_dropped += datagram.fragments;
  } else {
    ++p.counters.reassembled;
  }
  p.remove(index);
  return whole;
}

void IpReassembly::refuse(std::uint32_t id, const DecodedPacket& packet) noexcept {
  Parts& p = *parts_;
  const Key key = key_of(id, packet);
  std::uint32_t index = p.find(key);
  if (index == kNone) index = p.make(key);
  p.datagrams[index].refused = true;
  p.datagrams[index].last_ns = packet.timestamp_ns;
}

void IpReassembly::expire(std::uint64_t now_ns) noexcept {
  Parts& p = *parts_;
  while (p.oldest != kNone && p.timed_out(p.datagrams[p.oldest], now_ns)) p.time_out(p.oldest);
}

std::size_t IpReassembly::datagrams() const noexcept { return parts_->waiting; }

std::size_t IpReassembly::memory_bytes() const noexcept {
  const Parts& p = *parts_;
  return p.most_datagrams * sizeof(Datagram) + std::size_t{p.most_blocks} * sizeof(Block) +
         p.buckets.size() * sizeof(std::uint32_t) + p.order.capacity() * sizeof(Parts::Chosen) +
         p.owners.capacity() * sizeof(std::uint16_t);
}

}  // namespace penstock::stack
