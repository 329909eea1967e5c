// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The ports that one worker's translated connections have, from the blocks of their hosts (port_blocks.h). A host's
// socket keeps its public port whatever the destination is (RFC 4787, endpoint-independent mapping), as long as it has
// connections in this worker. A part of the table. All memory is reserved at construction.

#pragma once

#include <cstdint>
#include <memory>

#include "base/huge_page_allocator.h"
#include "conntrack/nat_ports.h"
#include "conntrack/nat_range.h"
#include "conntrack/port_blocks.h"
#include "conntrack/tuple.h"
#include "packet/ip.h"

namespace penstock::conntrack {

class SubscriberPorts {
 public:
  SubscriberPorts(std::shared_ptr<PortBlocks> blocks, std::uint32_t most_connections, std::uint64_t seed);

  /// The times of what follows: of the table, and of packets, for the observer.
  void set_time(std::uint64_t now_ns, std::uint64_t packet_time_ns) noexcept {
    now_ns_ = now_ns;
    packet_time_ns_ = packet_time_ns;
  }
  /// Gives the connection with this index a port, and writes address and port to `tuple`, whose source is the host's
  /// own. Otherwise why it has none, and the tuple is unchanged. `range` has addresses, and neither kNetmap nor kPorts.
  /// `is_taken(tuple)`: whether another connection has the tuple of its replies; may release ports.
  template <typename IsTaken>
  [[nodiscard]] PortBlocks::Refusal translate(std::uint32_t connection, Tuple& tuple, const NatRange& range,
                                              IsTaken&& is_taken) noexcept;
  /// For a connection of an earlier run: its source before it was translated, and then. False: another host, or another
  /// worker, has that port.
  [[nodiscard]] bool restore(std::uint32_t connection, const Tuple& own, const Tuple& translated) noexcept;
  /// The connection has ended. Does nothing if it has no port.
  void release(std::uint32_t connection) noexcept;
  /// Gives back blocks that had no connection for long enough, a few at a time.
  void expire() noexcept;

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  /// A socket of a host, and its public port.
  struct Mapping {
    Ipv6Address inside;
    std::uint16_t inside_port;
    std::uint8_t protocol, ip_version;
    std::uint32_t block;
    std::uint16_t offset;  // of the port, in its block
    std::uint32_t connections;
    std::uint32_t next;  // in its bucket, or of those that are free
  };

  [[nodiscard]] static PortKind kind_of(const Tuple& tuple) noexcept;
  [[nodiscard]] std::uint32_t& mapping_bucket_of(const Tuple& tuple) noexcept;
  [[nodiscard]] std::uint32_t& block_bucket_of(const Subscriber& subscriber) noexcept;
  [[nodiscard]] bool is_of(const Mapping& mapping, const Tuple& tuple) const noexcept;
  [[nodiscard]] bool lies_in(std::uint32_t block, const NatRange& range) const noexcept;
  void write(const Mapping& mapping, Tuple& tuple) const noexcept;
  /// The first port of the block that is free, from `start` on and then from 0 on. It must have one.
  [[nodiscard]] std::uint16_t find_free(std::uint32_t block, PortKind kind, std::uint16_t start) noexcept;
  template <typename IsTaken>
  [[nodiscard]] std::uint32_t map_in(std::uint32_t block, const Tuple& own, Tuple& tuple, IsTaken&& is_taken) noexcept;
  [[nodiscard]] std::uint32_t add_mapping(const Tuple& own, std::uint32_t block, std::uint16_t offset) noexcept;
  void release_mapping(std::uint32_t mapping) noexcept;
  void add_block(std::uint32_t block) noexcept;
  void begin_idle(std::uint32_t block) noexcept;
  void end_idle(std::uint32_t block) noexcept;
  void tell_of_restored() noexcept;

  const std::shared_ptr<PortBlocks> blocks_;
  const std::uint64_t hold_ns_;
  const std::uint64_t seed_;
  RandomPorts random_ports_;
  const std::uint32_t mapping_mask_, block_mask_;
  HugeMemory<std::uint32_t> mapping_of_;  // by connection
  HugeMemory<Mapping> mappings_;
  HugeMemory<std::uint32_t> mapping_buckets_;
  HugeMemory<std::uint32_t> block_buckets_;  // of this worker's blocks, by host
  std::uint32_t used_mappings_ = 0;          // memory of higher indices has never been used
  std::uint32_t free_mapping_ = kNone;
  std::uint32_t first_idle_ = kNone, last_idle_ = kNone;  // blocks without ports in use, in the order of their times
  bool has_restored_ = false;                             // blocks of which the observer was not told
  std::uint64_t now_ns_ = 0, packet_time_ns_ = 0;
};

/// The mapping; kNone: all free ports that were tried are taken for this tuple.
template <typename IsTaken>
std::uint32_t SubscriberPorts::map_in(std::uint32_t block, const Tuple& own, Tuple& tuple,
                                      IsTaken&& is_taken) noexcept {
  constexpr unsigned kMostAttempts = 16;
  const PortKind kind = kind_of(own);
  const std::uint16_t size = blocks_->options().size;
  auto start = static_cast<std::uint16_t>(random_ports_.next() % size);
  for (unsigned i = 0; i < kMostAttempts && blocks_->at(block).used[static_cast<unsigned>(kind)] < size; ++i) {
    const std::uint16_t offset = find_free(block, kind, start);
    // It is in use while others, which may end, are looked up.
    const std::uint32_t mapping = add_mapping(own, block, offset);
    write(mappings_[mapping], tuple);
    if (!is_taken(tuple)) return mapping;
    release_mapping(mapping);
    start = static_cast<std::uint16_t>((offset + 1) % size);
  }
  tuple = own;
  return kNone;
}

template <typename IsTaken>
PortBlocks::Refusal SubscriberPorts::translate(std::uint32_t connection, Tuple& tuple, const NatRange& range,
                                               IsTaken&& is_taken) noexcept {
  const Tuple own = tuple;
  if (!is_icmp(own) && !begins_with_ports(own.protocol)) return PortBlocks::Refusal::without_ports;
  if (has_restored_) tell_of_restored();
  std::uint32_t next = kNone;
  for (std::uint32_t i = mapping_bucket_of(own); i != kNone; i = next) {
    Mapping& mapping = mappings_[i];
    if (is_of(mapping, own) && lies_in(mapping.block, range)) {
      ++mapping.connections;
      write(mapping, tuple);
      if (!is_taken(tuple)) {
        mapping_of_[connection] = i;
        return PortBlocks::Refusal::none;
      }
      tuple = own;
      next = mapping.next;
      release_mapping(i);
    } else {
      next = mapping.next;
    }
  }
  const Subscriber subscriber{own.source, own.ip_version};
  for (std::uint32_t block = block_bucket_of(subscriber); block != kNone; block = blocks_->at(block).next_owned) {
    if (blocks_->at(block).subscriber != subscriber || !lies_in(block, range)) continue;
    mapping_of_[connection] = map_in(block, own, tuple, is_taken);
    if (mapping_of_[connection] != kNone) return PortBlocks::Refusal::none;
  }
  const auto [block, refusal] = blocks_->take(own, range, packet_time_ns_);
  if (block == kNone) return refusal;
  add_block(block);
  mapping_of_[connection] = map_in(block, own, tuple, is_taken);
  return mapping_of_[connection] != kNone ? PortBlocks::Refusal::none : PortBlocks::Refusal::no_block;
}

}  // namespace penstock::conntrack
