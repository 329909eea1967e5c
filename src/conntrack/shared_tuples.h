// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The tuples that one worker's connections have among all workers (tuple_owners.h). A connection has two: its
// original's from its first packet on, and its reply's once that is decided. A part of the table.

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/huge_page_allocator.h"
#include "conntrack/tuple_owners.h"

namespace penstock::conntrack {

class SharedTuples {
 public:
  SharedTuples(std::shared_ptr<TupleOwners> owners, unsigned worker, std::uint32_t most_connections)
      : owners_(std::move(owners)), worker_(worker), places_(make_huge_memory<Places>(most_connections)) {
    std::fill_n(places_.get(), most_connections, Places());
  }

  // Of the connection with this index in the store. False: another one has the tuple, or there is no room for it.

  [[nodiscard]] bool enter_original(std::uint32_t connection, const Tuple& original) noexcept {
    return enter(places_[connection].original, original);
  }
  /// In place of the one that it had.
  [[nodiscard]] bool enter_reply(std::uint32_t connection, const Tuple& reply) noexcept {
    leave_reply(connection);
    return enter(places_[connection].reply, reply);
  }
  [[nodiscard]] bool has_reply(std::uint32_t connection) const noexcept {
    return TupleOwners::is_entered(places_[connection].reply);
  }
  void leave_reply(std::uint32_t connection) noexcept { leave(places_[connection].reply); }
  /// It has ended.
  void leave_both(std::uint32_t connection) noexcept {
    leave(places_[connection].original);
    leave_reply(connection);
  }

  // What a helper expects: the tuple of a first packet, from any port.

  [[nodiscard]] TupleOwners::Place enter_expected(const Tuple& tuple) noexcept {
    return owners_->enter(from_any_port(tuple), worker_);
  }
  void leave_expected(TupleOwners::Place place) noexcept { leave(place); }

  /// Whether a connection of any worker has it.
  [[nodiscard]] bool is_taken(const Tuple& tuple) const noexcept { return owners_->find(tuple).has_value(); }
  /// Call it some time before other_owner().
  [[nodiscard]] TupleOwners::Key fetch(const Tuple& tuple) const noexcept {
    const TupleOwners::Key key = owners_->key_of(tuple);
    owners_->prefetch(key);
    return key;
  }
  /// Another worker that has a connection with this tuple, or expects one. `may_be_expected`: helpers are offered.
  [[nodiscard]] std::optional<unsigned> other_owner(const Tuple& tuple, const TupleOwners::Key& key,
                                                    bool may_be_expected) const noexcept {
    std::optional<unsigned> owner = owners_->find(key);
    if (!owner && may_be_expected) owner = owners_->find(from_any_port(tuple));
    return owner == worker_ ? std::nullopt : owner;
  }

 private:
  struct Places {
    TupleOwners::Place original = TupleOwners::kTaken, reply = TupleOwners::kTaken;
  };

  /// No connection has such a tuple.
  [[nodiscard]] static Tuple from_any_port(Tuple tuple) noexcept {
    constexpr std::uint8_t kExpected = 0x80;
    tuple.source_port = 0;
    tuple.ip_version |= kExpected;
    return tuple;
  }
  [[nodiscard]] bool enter(TupleOwners::Place& place, const Tuple& tuple) noexcept {
    place = owners_->enter(tuple, worker_);
    return TupleOwners::is_entered(place);
  }
  void leave(TupleOwners::Place& place) noexcept {
    if (TupleOwners::is_entered(place)) owners_->leave(place);
    place = TupleOwners::kTaken;
  }

  const std::shared_ptr<TupleOwners> owners_;
  const unsigned worker_;
  HugeMemory<Places> places_;  // by connection
};

}  // namespace penstock::conntrack
