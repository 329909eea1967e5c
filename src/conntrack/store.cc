// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/store.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/prefetch.h"

namespace penstock::conntrack {

Store::Store(std::uint32_t capacity, std::uint64_t seed)
    : capacity_(std::clamp<std::uint32_t>(capacity, 1, 1U << 31)),
      connections_(make_huge_memory<Connection>(capacity_)),
      buckets_(make_huge_memory<std::uint32_t>(std::bit_ceil(capacity_))),
      bucket_mask_(std::bit_ceil(capacity_) - 1),
      seed_(seed),
      nat_(capacity_, seed) {
  std::fill_n(buckets_.get(), std::size_t{bucket_mask_} + 1, kNone);
  slots_.fill(kNone);
}

Found Store::find(const Tuple& tuple, std::uint32_t hash) noexcept {
  for (std::uint32_t i = buckets_[hash & bucket_mask_]; i != kNone; i = connections_[i].next_in_bucket) {
    Connection& connection = connections_[i];
    // A host that talks to itself from one port to the same: the kernel finds the reply first.
    if (are_inverse(connection.original, tuple) && !connection.translated()) return {&connection, Direction::reply};
    if (connection.original == tuple) return {&connection, Direction::original};
  }
  if (nat_.empty()) return {};
  return {nat_.find_reply(connections_.get(), tuple, hash), Direction::reply};
}

void Store::prefetch_bucket(std::uint32_t hash) const noexcept {
  prefetch(&buckets_[hash & bucket_mask_]);
  if (has_translated()) nat_.prefetch_bucket(hash);
}

void Store::prefetch_connection(std::uint32_t hash) const noexcept {
  const std::uint32_t first = buckets_[hash & bucket_mask_];
  if (first != kNone) prefetch(&connections_[first], 2 * kCacheLineBytes);
  if (has_translated()) nat_.prefetch_connection(connections_.get(), hash);
}

Connection* Store::take(const Tuple& original, const Tuple& reply) noexcept {
  std::uint32_t generation = 0;
  std::uint32_t index = free_;
  if (index != kNone) {
    free_ = connections_[index].next_in_bucket;
    generation = connections_[index].generation;
  } else {
    if (used_ == capacity_) return nullptr;
    index = used_++;
  }
  Connection* const connection = new (&connections_[index]) Connection;
  connection->original = original;
  connection->reply = reply;
  connection->generation = generation;
  return connection;
}

void Store::give_back(Connection& connection) noexcept {
  connection.status = 0;
  ++connection.generation;
  connection.next_in_bucket = free_;
  free_ = index_of(connection);
}

void Store::insert(Connection& connection, std::uint32_t hash) noexcept {
  const std::uint32_t index = index_of(connection);
  std::uint32_t& bucket = buckets_[hash & bucket_mask_];
  connection.next_in_bucket = bucket;
  bucket = index;
  if (connection.translated()) nat_.insert(connections_.get(), index, hash_of(connection.reply));
  schedule(connection);
  enlist(connection, worth_of(connection));
  ++size_;
}

void Store::remove(Connection& connection) noexcept {
  std::uint32_t* link = &buckets_[hash_of(connection.original) & bucket_mask_];
  const std::uint32_t index = index_of(connection);
  while (*link != index) link = &connections_[*link].next_in_bucket;
  *link = connection.next_in_bucket;
  if (connection.translated()) nat_.remove(connections_.get(), index, hash_of(connection.reply));
  unschedule(connection);
  delist(connection, worth_of(connection));
  --size_;
}

Store::Worth Store::worth_of(const Connection& connection) noexcept {
  if (!connection.assured()) return Worth::unassured;
  return is_closing(connection.tcp_state) ? Worth::closing : Worth::kept;
}

void Store::revalue(Connection& connection, Worth before) noexcept {
  const Worth now = worth_of(connection);
  if (now == before) return;
  delist(connection, before);
  enlist(connection, now);
}

void Store::enlist(Connection& connection, Worth worth) noexcept {
  if (worth == Worth::kept) return;
  Ends& list = lists_[static_cast<unsigned>(worth)];
  const std::uint32_t index = index_of(connection);
  connection.order = {.next = kNone, .previous = list.last};
  (list.last == kNone ? list.first : connections_[list.last].order.next) = index;
  list.last = index;
}

void Store::delist(Connection& connection, Worth worth) noexcept {
  if (worth == Worth::kept) return;
  Ends& list = lists_[static_cast<unsigned>(worth)];
  const auto [next, previous] = connection.order;
  (previous == kNone ? list.first : connections_[previous].order.next) = next;
  (next == kNone ? list.last : connections_[next].order.previous) = previous;
}

Connection* Store::least_valuable() noexcept {
  for (const Ends& list : lists_) {
    if (list.first != kNone) return &connections_[list.first];
  }
  return nullptr;
}

void Store::move_forward(Connection& connection) noexcept {
  unschedule(connection);
  schedule(connection);
}

void Store::schedule(Connection& connection) noexcept {
  // Within the turn that follows the current slot.
  const std::uint32_t ahead = tick_after(connection.expires_ns) - tick_;
  connection.due_tick = tick_ + std::clamp<std::uint32_t>(ahead, 1, kSlots - 1);
  const std::uint32_t slot = connection.due_tick % kSlots, index = index_of(connection);
  connection.timer = {.next = slots_[slot], .previous = kNone};
  if (slots_[slot] != kNone) connections_[slots_[slot]].timer.previous = index;
  slots_[slot] = index;
  filled_[slot / kWordBits] |= std::uint64_t{1} << slot % kWordBits;
}

void Store::unschedule(Connection& connection) noexcept {
  const auto [next, previous] = connection.timer;
  if (next != kNone) connections_[next].timer.previous = previous;
  if (previous != kNone) {
    connections_[previous].timer.next = next;
    return;
  }
  const std::uint32_t slot = connection.due_tick % kSlots;
  slots_[slot] = next;
  if (next == kNone) filled_[slot / kWordBits] &= ~(std::uint64_t{1} << slot % kWordBits);
}

void Store::advance_to(std::uint32_t tick) noexcept {
  const std::uint32_t most = tick - tick_;
  for (std::uint32_t ahead = 1; ahead < most;) {
    const std::uint32_t slot = (tick_ + ahead) % kSlots;
    const std::uint64_t rest = filled_[slot / kWordBits] >> slot % kWordBits;
    if (rest != 0) {
      tick_ += std::min(most, ahead + static_cast<std::uint32_t>(std::countr_zero(rest)));
      return;
    }
    ahead += kWordBits - slot % kWordBits;
  }
  tick_ = tick;
}

}  // namespace penstock::conntrack
