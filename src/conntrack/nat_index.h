// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds translated connections by what the store's hash does not have: the tuple of their replies, and the source that
// they had before it was translated. A part of the store, which owns the connections.

#pragma once

#include <cstdint>

#include "base/huge_page_allocator.h"
#include "conntrack/connection.h"

namespace penstock::conntrack {

class NatIndex {
 public:
  NatIndex(std::uint32_t capacity, std::uint64_t seed);
  NatIndex(const NatIndex&) = delete;
  NatIndex& operator=(const NatIndex&) = delete;

  /// No connection is translated.
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// `connections` are all connections of the store, and `hash` is the tuple's in the store.
  [[nodiscard]] Connection* find_reply(Connection* connections, const Tuple& tuple, std::uint32_t hash) const noexcept;
  /// The newest connections whose source was that of `tuple` before it was translated, at most 16 of them: the first
  /// for which `accept(connection)` is true.
  template <typename Accept>
  [[nodiscard]] const Connection* find_source(const Connection* connections, const Tuple& tuple,
                                              Accept&& accept) const noexcept;

  /// `hash` is that of the reply's tuple in the store.
  void insert(Connection* connections, std::uint32_t index, std::uint32_t hash) noexcept;
  void remove(Connection* connections, std::uint32_t index, std::uint32_t hash) noexcept;

  void prefetch_bucket(std::uint32_t hash) const noexcept;
  void prefetch_connection(const Connection* connections, std::uint32_t hash) const noexcept;

 private:
  static constexpr std::uint32_t kNone = Connection::kNone;

  [[nodiscard]] std::uint32_t& source_bucket_of(const Tuple& tuple) const noexcept;

  std::uint64_t seed_;
  std::uint32_t mask_;
  std::uint32_t size_ = 0;
  HugeMemory<std::uint32_t> replies_;  // buckets; linked by Connection::next_reply
  HugeMemory<std::uint32_t> sources_;  // buckets
  // One host may have many connections from one port, so both directions are linked.
  HugeMemory<Connection::Links> links_;  // by connection
};

template <typename Accept>
const Connection* NatIndex::find_source(const Connection* connections, const Tuple& tuple,
                                        Accept&& accept) const noexcept {
  if (empty()) return nullptr;
  std::uint32_t left = 16;
  for (std::uint32_t i = source_bucket_of(tuple); i != kNone && left != 0; i = links_[i].next, --left) {
    const Tuple& original = connections[i].original;
    if (original.source == tuple.source && original.source_port == tuple.source_port &&
        original.protocol == tuple.protocol && original.ip_version == tuple.ip_version && accept(connections[i])) {
      return &connections[i];
    }
  }
  return nullptr;
}

}  // namespace penstock::conntrack
