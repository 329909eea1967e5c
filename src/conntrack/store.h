// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// All connections of a worker, and their memory, which is reserved at construction. A hash finds them, a timer wheel
// has those that may have expired, and two lists have those that can make room for new ones, oldest first.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/huge_page_allocator.h"
#include "conntrack/connection.h"
#include "conntrack/nat_index.h"

namespace penstock::conntrack {

struct Found {
  Connection* connection = nullptr;
  Direction direction = Direction::original;
};

class Store {
 public:
  Store(std::uint32_t capacity, std::uint64_t seed);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  [[nodiscard]] std::uint32_t hash_of(const Tuple& tuple) const noexcept { return conntrack::hash_of(tuple, seed_); }
  /// A connection in the hash with this tuple, expired or not.
  [[nodiscard]] Found find(const Tuple& tuple, std::uint32_t hash) noexcept;
  /// Whether there are connections whose reply's tuple is not the inverse of the original's.
  [[nodiscard]] bool has_translated() const noexcept { return !nat_.empty(); }
  /// NatIndex::find_source
  template <typename Accept>
  [[nodiscard]] const Connection* find_source(const Tuple& tuple, Accept&& accept) const noexcept {
    return nat_.find_source(connections_.get(), tuple, accept);
  }
  void prefetch_bucket(std::uint32_t hash) const noexcept;
  void prefetch_connection(std::uint32_t hash) const noexcept;

  /// Memory for a connection, which is in no structure yet. Null if there is none left.
  [[nodiscard]] Connection* take(const Tuple& original, const Tuple& reply) noexcept;
  /// Gives back what is in no structure.
  void give_back(Connection& connection) noexcept;
  /// Enters a taken connection into all structures, by its expires_ns.
  void insert(Connection& connection, std::uint32_t hash) noexcept;
  /// Removes a connection from all structures.
  void remove(Connection& connection) noexcept;

  /// After its expires_ns has changed.
  void reschedule(Connection& connection) noexcept {
    if (static_cast<std::int32_t>(tick_after(connection.expires_ns) - connection.due_tick) < 0)
      move_forward(connection);
  }
  /// How a connection can make room for a new one.
  enum class Worth : std::uint8_t {
    unassured,  // no traffic of both sides yet: nothing is lost
    closing,    // the hosts have ended it
    kept,
  };
  [[nodiscard]] static Worth worth_of(const Connection& connection) noexcept;
  /// After its status or state has changed. `before`: its worth before that.
  void revalue(Connection& connection, Worth before) noexcept;
  /// The connection to remove to make room: the oldest of the least worth. Null if all must be kept.
  [[nodiscard]] Connection* least_valuable() noexcept;

  /// Calls `expired(connection)`, which must remove it, for connections that have expired. Looks at `most` connections;
  /// the rest follows with the next call.
  template <typename Expired>
  void expire(std::uint64_t now_ns, std::uint32_t most, Expired&& expired) noexcept;

  [[nodiscard]] Connection* at(std::uint32_t index) noexcept { return &connections_[index]; }
  [[nodiscard]] std::uint32_t index_of(const Connection& connection) const noexcept {
    return static_cast<std::uint32_t>(&connection - connections_.get());
  }
  /// Memory of lower indices has been used.
  [[nodiscard]] std::uint32_t used() const noexcept { return used_; }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

 private:
  static constexpr std::uint32_t kNone = Connection::kNone;
  // A slot of the wheel is about a second, and the wheel about 73 minutes. A connection that lives longer is looked at
  // once in each turn.
  static constexpr unsigned kTickBits = 30;
  static constexpr std::uint32_t kSlots = 4096;
  static constexpr std::uint32_t kWordBits = 64;

  /// The first tick at which it is certain that the time is over.
  [[nodiscard]] static std::uint32_t tick_after(std::uint64_t time_ns) noexcept {
    return static_cast<std::uint32_t>(time_ns >> kTickBits) + 1;
  }
  void move_forward(Connection& connection) noexcept;
  void schedule(Connection& connection) noexcept;
  void unschedule(Connection& connection) noexcept;
  void enlist(Connection& connection, Worth worth) noexcept;
  void delist(Connection& connection, Worth worth) noexcept;
  /// Moves to the next slot that is not empty, at most to `tick`.
  void advance_to(std::uint32_t tick) noexcept;

  std::uint32_t capacity_;
  HugeMemory<Connection> connections_;  // constructed on first use
  HugeMemory<std::uint32_t> buckets_;
  std::uint32_t bucket_mask_;
  std::uint64_t seed_;
  NatIndex nat_;
  std::uint32_t free_ = kNone;  // linked by next_in_bucket
  std::uint32_t used_ = 0;
  std::uint32_t size_ = 0;
  struct Ends {
    std::uint32_t first = kNone, last = kNone;
  };
  std::array<Ends, 2> lists_;  // by Worth
  std::array<std::uint32_t, kSlots> slots_;
  std::array<std::uint64_t, kSlots / kWordBits> filled_{};  // a bit for each slot that is not empty
  std::uint32_t tick_ = 0;                                  // of the slot that is being looked at
};

template <typename Expired>
void Store::expire(std::uint64_t now_ns, std::uint32_t most, Expired&& expired) noexcept {
  const auto now = static_cast<std::uint32_t>(now_ns >> kTickBits);
  // After a long pause all slots are due. One turn then looks at all of them.
  if (now - tick_ >= kSlots) tick_ = now - kSlots + 1;
  while (most != 0) {
    const std::uint32_t first = slots_[tick_ % kSlots];
    if (first == kNone) {
      if (tick_ == now) return;
      advance_to(now);
      continue;
    }
    --most;
    Connection& connection = connections_[first];
    if (connection.expires_ns <= now_ns) {
      expired(connection);
    } else {
      unschedule(connection);
      schedule(connection);
    }
  }
}

}  // namespace penstock::conntrack
