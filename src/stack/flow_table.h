// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// All flows of a worker. Flows are found by key in either direction, limited in number, and time out when idle. The
// table owns the flows. The tracker owns their TCP sessions and frees them before it removes a flow.

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

/// The key for looking up the flow of a packet.
struct FlowLookup {
  FlowKey key;               // with the packet's sender as the client
  std::uint32_t hash = 0;    // of the key and the table's seed; the same for both directions
  bool begins_none = false;  // an ICMP error: it belongs to the flow of the packet it quotes, and starts none
};

/// Fills in `lookup`, which must be default-constructed. False for packets that belong to no flow
/// (DecodedPacket::has_flow). `seed`: FlowTable::seed().
[[nodiscard]] bool read_flow_of(const DecodedPacket& packet, std::uint64_t seed, FlowLookup& lookup) noexcept;
[[nodiscard]] inline std::optional<FlowLookup> flow_lookup_of(const DecodedPacket& packet,
                                                              std::uint64_t seed) noexcept {
  FlowLookup lookup;
  return read_flow_of(packet, seed, lookup) ? std::optional(lookup) : std::nullopt;
}
/// A cheap guess at FlowLookup::hash without decoding the frame. Correct for plain TCP or UDP over IP over Ethernet.
/// For other frames nullopt, or a hash that matches no flow. Use it only for prefetching.
[[nodiscard]] std::optional<std::uint32_t> likely_hash_of(PacketView frame, std::uint64_t seed) noexcept;

class FlowTable {
 public:
  /// The capacity is as many flows as fit into `options.flow_memory`, but at least one.
  explicit FlowTable(const TrackerOptions& options);
  ~FlowTable();
  FlowTable(const FlowTable&) = delete;
  FlowTable& operator=(const FlowTable&) = delete;

  /// The flow with this key, timed out or not; null if there is none.
  [[nodiscard]] Flow* find(const FlowLookup& lookup) noexcept;

  // Prefetching for packets that will be looked up soon, in three steps: the bucket of this hash, the first flow in the
  // bucket, and access to that flow. Leave time between the steps so that the fetched cache lines can arrive.
  // likely_flow() is probably, but not certainly, the flow that `find` will return; null if the bucket is empty.
  void prefetch_bucket(std::uint32_t hash) const noexcept;
  void prefetch_flow(std::uint32_t hash) const noexcept;
  [[nodiscard]] const Flow* likely_flow(std::uint32_t hash) const noexcept;

  /// Null if the table is full: see victim(). The table must not contain a flow with this key.
  [[nodiscard]] Flow* add(const FlowLookup& lookup, std::uint64_t now_ns) noexcept;
  void remove(Flow& flow) noexcept;

  /// A flow that has timed out by `now_ns`; null if there is none. The caller must remove it before the next call.
  [[nodiscard]] Flow* expired(std::uint64_t now_ns) noexcept;
  /// Call after each packet that may have changed the flow's state.
  void note_state(const Flow& flow) noexcept;
  [[nodiscard]] bool has_timed_out(const Flow& flow, std::uint64_t now_ns) const noexcept;
  /// The flow to evict to make room for a new one: one of the least valuable kind that has long been idle. Null if
  /// there is none, or if `but_established_tcp` is set and only established TCP connections are left.
  [[nodiscard]] Flow* victim(bool but_established_tcp) noexcept;
  /// Any flow; among flows of the same kind, the longest idle first. Null if the table is empty.
  [[nodiscard]] Flow* any() noexcept;

  /// Random, so that an attacker cannot predict which flows share a bucket.
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  struct Node;
  static constexpr std::uint32_t kNone = 0xffffffff;
  // {other protocols, TCP} × {new, established, closed}, plus TCP closed by one side only. One timeout per list.
  static constexpr std::size_t kLists = 7;
  struct List {
    std::uint32_t first = kNone, last = kNone;
    std::uint64_t timeout_ns = 0;
  };

  [[nodiscard]] static std::size_t list_of(const Flow& flow) noexcept;
  [[nodiscard]] Node& node_at(std::uint32_t index) const noexcept;
  void enlist(Node& node, std::size_t list) noexcept;
  void delist(Node& node) noexcept;

  std::size_t slots_;       // per flow
  std::size_t node_bytes_;  // of a node with its slots, which follow it
  std::size_t capacity_;
  HugeMemory<std::byte> nodes_;  // constructed on first use
  HugeMemory<std::uint32_t> buckets_;
  std::uint32_t bucket_mask_;
  std::uint64_t seed_;
  std::array<List, kLists> lists_;
  // The earliest time at which the first flow of a list may time out, and whether a list must be checked before that.
  std::uint64_t due_ns_ = 0;
  bool look_ = false;
  std::uint32_t free_ = kNone;
  std::uint32_t made_ = 0;
  std::size_t size_ = 0;
  std::uint64_t next_id_;
};

}  // namespace penstock::stack
