// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Storage for IP fragments: datagrams, found by key, and their fragments in blocks. All memory is allocated at start
// and touched only when used.
//
//   datagram ─▶ fragment ─▶ fragment ─▶ …      in order of arrival
//                  │
//                block ─▶ block ─▶ …           a record; the IP header, if it is the datagram's first; the data
//
// Memory is limited in bytes, not in datagrams. When it runs out, the oldest datagram of a source that uses more than
// its share is evicted, then the oldest of all. Datagrams that were already reassembled go before those still waiting.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "stack/decoded_packet.h"
#include "stack/tracker_options.h"

namespace penstock::stack {

/// Identifies a datagram. IPv4 includes the protocol (RFC 791), IPv6 does not (RFC 8200 §4.5).
struct DatagramKey {
  std::array<std::uint64_t, 4> addresses;
  std::uint32_t id;
  VlanIds vlan_ids;
  std::uint8_t ip_version, protocol;
  friend bool operator==(const DatagramKey&, const DatagramKey&) = default;
};
[[nodiscard]] DatagramKey datagram_key(std::uint32_t id, const DecodedPacket& packet) noexcept;

/// The record at the start of a fragment's first block.
struct FragmentRecord {
  std::uint32_t next;  // next fragment, by its first block
  std::uint32_t begin, end;
  std::uint32_t sum;  // of its data, in 16-bit words
  std::uint32_t header_bytes, next_header_at;
  std::uint8_t next_header;
  bool more;
};

struct Datagram {
  static constexpr std::size_t kCoverageBlocks = 5;  // 8192 units of 8 bytes, a bit each

  DatagramKey key;
  std::uint64_t last_ns;
  std::uint32_t next_in_bucket, older, newer;  // datagrams
  std::uint32_t first, last;                   // fragments, in order of arrival
  std::uint32_t fragments, stored;             // their number, and their bytes
  std::uint32_t blocks;
  std::array<std::uint32_t, kCoverageBlocks> coverage;
  std::uint32_t end;          // highest end seen
  std::uint32_t last_end;     // end of the fragment without MF; kNone: not seen yet
  std::uint32_t whole_units;  // 8-byte units that were seen in full
  std::uint16_t source;       // index into the per-source accounts
  std::uint8_t list;
  std::uint8_t ecn;  // ECN codepoints of its fragments, one bit each
  bool last_seen;    // the last fragment (without MF) was seen
  bool tail_seen;    // a fragment that does not end on a unit boundary was seen
  bool overlapped;   // fragments overlap, or are too irregular for the unit bitmap to tell
  bool contested;    // they overlap with different content
  bool done;         // it was reassembled once
  bool only_again;   // since then, only duplicates of known fragments arrived
};
static_assert(std::is_trivial_v<Datagram>, "their memory is not touched before they are used");

class FragmentMemory {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;
  enum List : std::uint8_t { kWaiting, kDone, kRefused, kLists };

  FragmentMemory(const TrackerOptions& options, TrackerCounters& told);

  [[nodiscard]] Datagram& operator[](std::uint32_t index) noexcept { return datagrams_[index]; }
  [[nodiscard]] const Datagram& operator[](std::uint32_t index) const noexcept { return datagrams_[index]; }
  [[nodiscard]] std::uint32_t find(const DatagramKey& key) const noexcept;
  /// Returns a new datagram; kNone if memory is full and no other datagram may be evicted.
  [[nodiscard]] std::uint32_t make(const DatagramKey& key, std::uint64_t now_ns) noexcept;
  void remove(std::uint32_t index) noexcept;
  /// Makes the datagram the newest of a list.
  void move_to(std::uint32_t index, List list) noexcept;
  /// Frees its fragments. Further fragments of the datagram are refused until it times out.
  void refuse(std::uint32_t index) noexcept;
  /// Evicts datagrams other than `but` until `blocks` blocks are free. False if that is not possible.
  [[nodiscard]] bool make_room(std::uint32_t blocks, std::uint32_t but, std::uint64_t now_ns) noexcept;

  [[nodiscard]] bool timed_out(const Datagram& datagram, std::uint64_t now_ns) const noexcept {
    return now_ns > datagram.last_ns && now_ns - datagram.last_ns > timeout_ns_;
  }
  void time_out(std::uint32_t index) noexcept;
  void expire(std::uint64_t now_ns) noexcept;

  // ---- fragments

  static constexpr std::uint32_t blocks_for(std::size_t bytes) noexcept {
    return static_cast<std::uint32_t>((sizeof(FragmentRecord) + bytes + kBlockBytes - 1) / kBlockBytes);
  }
  /// Stores a fragment and returns it. Enough blocks must be free: see make_room().
  std::uint32_t store(Datagram& datagram, FragmentRecord record, Bytes header, Bytes data) noexcept;
  void drop_oldest_fragment(Datagram& datagram) noexcept;
  [[nodiscard]] FragmentRecord record(std::uint32_t fragment) const noexcept {
    FragmentRecord record;
    std::memcpy(&record, blocks_[fragment].bytes.data(), sizeof(record));
    return record;
  }
  /// Calls `use(fragment, record)` for each fragment, in order of arrival, until it returns false.
  template <typename Use>
  void for_each(const Datagram& datagram, Use&& use) const {
    for (std::uint32_t fragment = datagram.first; fragment != kNone;) {
      const FragmentRecord one = record(fragment);
      if (!use(fragment, one)) return;
      fragment = one.next;
    }
  }
  /// Calls `use(position, bytes)` for the bytes after the record, block by block. Position 0 is the first byte of the
  /// header, which precedes the data.
  template <typename Use>
  void read(std::uint32_t fragment, const FragmentRecord& record, Use&& use) const {
    std::size_t position = 0, left = record.header_bytes + (record.end - record.begin), at = sizeof(FragmentRecord);
    for (std::uint32_t block = fragment; left > 0; block = blocks_[block].next, at = 0) {
      const std::size_t count = std::min(left, kBlockBytes - at);
      use(position, Bytes{blocks_[block].bytes.data() + at, count});
      position += count;
      left -= count;
    }
  }
  /// The same for the data only. Positions are offsets in the datagram.
  template <typename Use>
  void read_data(std::uint32_t fragment, const FragmentRecord& record, Use&& use) const {
    read(fragment, record, [&](std::size_t position, Bytes bytes) {
      if (position + bytes.size() <= record.header_bytes) return;
      if (position < record.header_bytes) {
        bytes = bytes.subspan(record.header_bytes - position);
        position = record.header_bytes;
      }
      use(record.begin + position - record.header_bytes, bytes);
    });
  }

  // ---- coverage: which 8-byte units of a datagram were seen

  /// The number of blocks that marking [begin, end) may need.
  [[nodiscard]] std::uint32_t coverage_blocks_for(const Datagram& datagram, std::uint32_t begin,
                                                  std::uint32_t end) const noexcept;
  /// Whether some of the bytes may have been seen before.
  [[nodiscard]] bool may_overlap(const Datagram& datagram, std::uint32_t begin, std::uint32_t end) const noexcept;
  /// Marks the bytes as seen. True if any of them were seen before.
  bool mark_seen(Datagram& datagram, std::uint32_t begin, std::uint32_t end, bool more) noexcept;
  /// Whether all bytes were seen. A partial last unit belongs to the last fragment.
  [[nodiscard]] static bool complete(const Datagram& datagram) noexcept {
    return datagram.last_seen && datagram.whole_units == datagram.end / 8;
  }
  void forget_seen(Datagram& datagram) noexcept;

  [[nodiscard]] std::size_t waiting() const noexcept { return lists_[kWaiting].count; }
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  static constexpr std::size_t kBlockBytes = 252;
  static constexpr std::size_t kShares = 4096;        // per-source accounts, by hash of the source address
  static constexpr std::uint32_t kMostLookedAt = 64;  // limit of the search for a datagram of a greedy source
  struct Block {
    std::uint32_t next;
    std::array<std::uint8_t, kBlockBytes> bytes;
  };
  static_assert(std::is_trivial_v<Block> && sizeof(Block) == 256);
  struct Queue {
    std::uint32_t oldest = kNone, newest = kNone, count = 0;
  };

  [[nodiscard]] std::size_t bucket_of(const DatagramKey& key) const noexcept;
  [[nodiscard]] std::uint16_t source_of(const DatagramKey& key) const noexcept;
  void enlist(std::uint32_t index, List list) noexcept;
  void delist(std::uint32_t index) noexcept;
  std::uint32_t take_block(Datagram& datagram) noexcept;
  void give_back(Datagram& datagram, std::uint32_t first_block) noexcept;
  void free_fragments(Datagram& datagram) noexcept;
  [[nodiscard]] bool is_greedy(std::uint16_t source) const noexcept { return shares_[source] > most_blocks_ / 8; }
  [[nodiscard]] std::uint32_t victim(std::uint16_t newcomer, std::uint32_t but) const noexcept;
  [[nodiscard]] bool give_up_one(std::uint16_t newcomer, std::uint32_t but, std::uint64_t now_ns) noexcept;
  [[nodiscard]] std::uint8_t* coverage_of(Datagram& datagram, std::uint32_t unit) noexcept;

  std::uint64_t timeout_ns_;
  bool refuse_when_full_;
  TrackerCounters& counters_;
  std::uint64_t seed_;

  std::unique_ptr<Datagram[]> datagrams_;
  std::unique_ptr<Block[]> blocks_;
  std::vector<std::uint32_t> buckets_;
  std::vector<std::uint32_t> shares_, datagrams_of_;  // by source: blocks in use, datagrams
  std::uint32_t most_datagrams_ = 0, most_blocks_ = 0;
  std::uint32_t datagrams_touched_ = 0, blocks_touched_ = 0;
  std::uint32_t free_datagram_ = kNone, free_block_ = kNone;
  std::uint32_t blocks_in_use_ = 0;
  std::array<Queue, kLists> lists_;
};

}  // namespace penstock::stack
