// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// All flows of a worker: found by their key in either direction, bounded in number, given up when nothing comes for
// long. Owns the flows; what hangs on them (sessions) is the tracker's, who ends them.

#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/huge_page_allocator.h"
#include "packet/packet.h"
#include "stack/decoded_packet.h"
#include "stack/flow.h"
#include "stack/tracker_options.h"

namespace penstock::stack {

/// A packet's own view of the flow that it belongs to.
struct FlowLookup {
  FlowKey key;               // the sender stands as the client
  std::uint32_t hash = 0;    // of the key and the table's seed, the same in both directions
  bool begins_none = false;  // an ICMP error: it belongs to the flow that it is about, or to none
};

/// False for packets that belong to no flow (DecodedPacket::has_flow). `lookup`: as it is made. `seed`:
/// FlowTable::seed().
[[nodiscard]] bool read_flow_of(const DecodedPacket& packet, std::uint64_t seed, FlowLookup& lookup) noexcept;
[[nodiscard]] inline std::optional<FlowLookup> flow_lookup_of(const DecodedPacket& packet,
                                                              std::uint64_t seed) noexcept {
  FlowLookup lookup;
  return read_flow_of(packet, seed, lookup) ? std::optional(lookup) : std::nullopt;
}
/// FlowLookup::hash of the packet in most frames, without decoding them: TCP or UDP in IP in Ethernet. Of others
/// nothing, or a hash of no flow: to prefetch by.
[[nodiscard]] std::optional<std::uint32_t> likely_hash_of(PacketView frame, std::uint64_t seed) noexcept;

class FlowTable {
 public:
  /// As many flows as `options.flow_memory` holds, one at the least.
  explicit FlowTable(const TrackerOptions& options);
  ~FlowTable();
  FlowTable(const FlowTable&) = delete;
  FlowTable& operator=(const FlowTable&) = delete;

  /// The flow of this key, timed out or not; null if there is none.
  [[nodiscard]] Flow* find(const FlowLookup& lookup) noexcept;

  // For packets that are looked up soon. Three steps, with time between them for what each fetches to arrive: the
  // bucket of this hash; the first flow in it; and that flow, which is only most likely the one that `find` gives.
  // Null: none.
  void prefetch_bucket(std::uint32_t hash) const noexcept;
  void prefetch_flow(std::uint32_t hash) const noexcept;
  [[nodiscard]] const Flow* likely_flow(std::uint32_t hash) const noexcept;

  /// Null where there is no room: see victim(). There must be no flow of this key.
  [[nodiscard]] Flow* add(const FlowLookup& lookup, std::uint64_t now_ns) noexcept;
  void remove(Flow& flow) noexcept;

  /// A flow that has timed out by this time; null if there is none. To be removed before the next call.
  [[nodiscard]] Flow* expired(std::uint64_t now_ns) noexcept;
  /// To be called after a packet that may have changed the flow's state.
  void note_state(const Flow& flow) noexcept;
  [[nodiscard]] bool has_timed_out(const Flow& flow, std::uint64_t now_ns) const noexcept;
  /// Which flow to give up for another: one of those that are worth least, long not heard of. Null: there is none, or
  /// all are established connections of TCP, and those are to stay.
  [[nodiscard]] Flow* victim(bool but_established_tcp) noexcept;
  /// Any flow, the longest not looked at first; null: there is none.
  [[nodiscard]] Flow* any() noexcept;

  /// Random: who sends packets does not know which flows share a bucket.
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  struct Node;
  static constexpr std::uint32_t kNone = 0xffffffff;
  // {others, TCP} × {new, established, closed}, and TCP that is closed as far as one side says: one timeout each
  static constexpr std::size_t kLists = 7;
  struct List {
    std::uint32_t first = kNone, last = kNone;
    std::uint64_t timeout_ns = 0;
  };

  [[nodiscard]] static std::size_t list_of(const Flow& flow) noexcept;
  [[nodiscard]] Node& node_at(std::uint32_t index) const noexcept;
  void enlist(Node& node, std::size_t list) noexcept;
  void delist(Node& node) noexcept;

  std::size_t slots_;       // of each flow
  std::size_t node_bytes_;  // with the slots, which follow it
  std::size_t capacity_;
  HugeMemory<std::byte> nodes_;  // made as they are first needed
  HugeMemory<std::uint32_t> buckets_;
  std::uint32_t bucket_mask_;
  std::uint64_t seed_;
  std::array<List, kLists> lists_;
  // When the first of a list may time out; and whether one has to be looked at before that.
  std::uint64_t due_ns_ = 0;
  bool look_ = false;
  std::uint32_t free_ = kNone;
  std::uint32_t made_ = 0;
  std::size_t size_ = 0;
  std::uint64_t next_id_;
};

}  // namespace penstock::stack
