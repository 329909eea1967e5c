// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/nat_index.h"

#include <algorithm>
#include <bit>

#include "base/keyed_hash.h"
#include "base/prefetch.h"

namespace penstock::conntrack {

NatIndex::NatIndex(std::uint32_t capacity, std::uint64_t seed)
    : seed_(seed),
      mask_(std::bit_ceil(capacity) - 1),
      replies_(make_huge_memory<std::uint32_t>(std::size_t{mask_} + 1)),
      sources_(make_huge_memory<std::uint32_t>(std::size_t{mask_} + 1)),
      links_(make_huge_memory<Connection::Links>(capacity)) {
  std::fill_n(replies_.get(), std::size_t{mask_} + 1, kNone);
  std::fill_n(sources_.get(), std::size_t{mask_} + 1, kNone);
}

Connection* NatIndex::find_reply(Connection* connections, const Tuple& tuple, std::uint32_t hash) const noexcept {
  for (std::uint32_t i = replies_[hash & mask_]; i != kNone; i = connections[i].next_reply) {
    if (connections[i].reply == tuple) return &connections[i];
  }
  return nullptr;
}

void NatIndex::insert(Connection* connections, std::uint32_t index, std::uint32_t hash) noexcept {
  ++size_;
  Connection& connection = connections[index];
  std::uint32_t& bucket = replies_[hash & mask_];
  connection.next_reply = bucket;
  bucket = index;
  if (!connection.source_translated()) return;
  std::uint32_t& source = source_bucket_of(connection.original);
  links_[index] = {.next = source, .previous = kNone};
  if (source != kNone) links_[source].previous = index;
  source = index;
}

void NatIndex::remove(Connection* connections, std::uint32_t index, std::uint32_t hash) noexcept {
  --size_;
  const Connection& connection = connections[index];
  std::uint32_t* link = &replies_[hash & mask_];
  while (*link != index) link = &connections[*link].next_reply;
  *link = connection.next_reply;
  if (!connection.source_translated()) return;
  const auto [next, previous] = links_[index];
  (previous == kNone ? source_bucket_of(connection.original) : links_[previous].next) = next;
  if (next != kNone) links_[next].previous = previous;
}

void NatIndex::prefetch_bucket(std::uint32_t hash) const noexcept { prefetch(&replies_[hash & mask_]); }

void NatIndex::prefetch_connection(const Connection* connections, std::uint32_t hash) const noexcept {
  const std::uint32_t first = replies_[hash & mask_];
  if (first != kNone) prefetch(&connections[first], sizeof(Connection));
}

std::uint32_t& NatIndex::source_bucket_of(const Tuple& tuple) const noexcept {
  const std::uint64_t kind =
      std::uint64_t{tuple.source_port} << 16 | std::uint64_t{tuple.protocol} << 8 | tuple.ip_version;
  return sources_[mix_product(mix_product(tuple.source.high ^ seed_, tuple.source.low), kind ^ seed_) & mask_];
}

}  // namespace penstock::conntrack
