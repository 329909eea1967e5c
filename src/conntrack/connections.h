// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The connections of one worker, shared by the functions of its chain. A packet is tracked once, when the first
// function asks about it; later functions, and whoever decides about it again, get the same answer. A connection is
// confirmed when a packet of it has passed the whole chain. Until then, the packets that follow find it nevertheless.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "conntrack/options.h"
#include "conntrack/table_access.h"
#include "conntrack/tracked.h"
#include "packet/packet.h"

namespace penstock::conntrack {

/// A connection by its memory, to be asked about later.
struct Reference {
  std::uint32_t index = 0, generation = 0;
  friend bool operator==(const Reference&, const Reference&) = default;
};

class Connections {
  /// What was said about a packet.
  struct Said {
    std::uint32_t sequence = 0;
    std::uint32_t connection = Connection::kNone;  // index
    std::uint32_t generation = 0;                  // of the connection
    bool any = false;
    bool may_be_translated = false;  // the connection
    bool may_begin = false;          // the packet counts among the open packets of its connection …
    bool waits = false;              // … also after its batch, until it goes on
    State state = State::untracked;
    Direction direction = Direction::original;
    Reason reason = Reason::malformed;
    bool expected = false;
    bool helped = false;
  };

 public:
  /// `most_packets`: with adjacent sequence numbers, from the oldest that is not settled yet to the newest.
  Connections(std::shared_ptr<TableAccess> access, std::size_t most_packets);
  /// With a table that nobody else knows.
  Connections(const Options& options, std::size_t most_packets)
      : Connections(std::make_shared<TableAccess>(options, Clock::packets), most_packets) {}

  // For functions.

  /// Table::will_write, at set-up.
  void will_write(NatKind kind) noexcept { table_.will_write(kind); }
  /// Call for each burst, at most kBurst packets with parsed layouts, before asking about the first of its packets.
  void prepare(std::span<const PacketView> packets) noexcept;
  /// Call in packet order. The connection, if any, is valid until the next call.
  [[nodiscard]] Tracked of(PacketView packet) noexcept;
  /// Instead of of(), for a packet that nobody has asked about: it has no connection, and changes none.
  void leave_untracked(PacketView packet) noexcept;
  /// Whether the packet may be the first of its connection: decide about it before asking about the next packet.
  [[nodiscard]] bool may_begin(const Tracked& tracked) const noexcept {
    return tracked.connection != nullptr && table_.is_open(*tracked.connection);
  }
  /// Table::translate for the connection of a packet that may begin it. False: drop the packet.
  [[nodiscard]] bool translate(const Tracked& tracked, NatKind kind, const NatRange& range) noexcept {
    return table_.translate(*tracked.connection, kind, range);
  }
  /// Whether help() must be called for a packet that passes the rules, before asking about the next one. `translates`:
  /// the function may change the packet, as help() does where the connection is translated.
  [[nodiscard]] bool needs_help(PacketView packet, const Tracked& tracked, bool translates) noexcept;
  /// Table::help. If a later function drops the packet, nothing is expected.
  [[nodiscard]] Helped help(PacketView packet, const Tracked& tracked) noexcept;
  /// Table::give_helper, for a packet that may begin its connection.
  bool give_helper(const Tracked& tracked) noexcept { return table_.give_helper(*tracked.connection); }
  /// The function that has just asked about this packet drops it. Only needed if it may begin a connection.
  void refuse(PacketView packet) noexcept;
  /// What was said about a packet that is not settled, or was settled last. If its connection has ended since, `lost`:
  /// it had a translation that is not known any more, or might have got one.
  [[nodiscard]] std::optional<Tracked> said(PacketView packet) noexcept;
  /// Until the connection expires; 0 before it is confirmed.
  [[nodiscard]] std::uint64_t remaining_ns(const Connection& connection) const noexcept {
    return connection.confirmed() ? table_.remaining_ns(connection) : 0;
  }
  [[nodiscard]] const Counters& counters() const noexcept { return table_.counters(); }
  [[nodiscard]] Reference reference_to(const Connection& connection) const noexcept {
    return {table_.index_of(connection), connection.generation};
  }
  /// Whether it is still tracked, and counts among those of its hosts: nf_conncount leaves TCP connections out that are
  /// over on both sides.
  [[nodiscard]] bool counts(const Reference& one) noexcept {
    const Connection& connection = table_.at(one.index);
    return connection.generation == one.generation && connection.tcp_state != TcpState::time_wait &&
           connection.tcp_state != TcpState::close && table_.remaining_ns(connection) != 0;
  }

  // For the executor.

  /// Table::share, at set-up.
  void share(std::shared_ptr<TupleOwners> owners, unsigned worker) { table_.share(std::move(owners), worker); }
  /// With share(), for each burst of packets as they arrived, before any function sees them: calls `hand_over(packet,
  /// worker)` for those that belong to other workers. Returns the others, and those for which it is false, in order,
  /// moved to the front.
  template <typename HandOver>
  [[nodiscard]] std::span<PacketView> keep_own(std::span<PacketView> burst, HandOver&& hand_over) noexcept;
  /// TableAccess::pass_boundary
  void pass_boundary() noexcept { access_->pass_boundary(); }
  /// Packets that are asked about from here on belong to batch number `number`.
  void begin_batch(std::uint64_t number) noexcept { number_ = number; }
  /// The verdicts of all packets of batches up to this number are final, and their descriptors are still there.
  void settle(std::uint64_t last_number = std::numeric_limits<std::uint64_t>::max()) noexcept;
  /// What was said about a packet that goes on when its batch has ended (run/held_packets.h).
  class Kept {
    friend class Connections;
    Said said_;
  };
  /// The function that decides about this packet lets it wait. Whether it passes is not known until it goes on, so it
  /// does not confirm its connection before.
  [[nodiscard]] Kept let_wait(PacketView packet) noexcept;
  /// It goes on, maybe with another descriptor, or ends: as if it had just been asked about. `is_asked`: functions that
  /// it comes to will ask.
  void go_on(PacketView packet, const Kept& kept, bool is_asked) noexcept;
  /// A position in the order in which packets were asked about …
  [[nodiscard]] std::size_t position() const noexcept { return end_; }
  /// … and the same as settle(), for packets that were asked about after it.
  void settle_after(std::size_t position) noexcept;

 private:
  /// A packet of a connection that is not confirmed yet, or that announces one.
  struct Unsettled {
    const PacketDescriptor* packet;
    std::uint64_t number;
    std::uint32_t connection, generation;
    std::uint32_t announcement;  // Table::announcement(); 0: its connection is not confirmed
  };

  void expire(std::span<const PacketView> packets) noexcept;
  [[nodiscard]] bool add(PacketView packet, Connection& connection) noexcept;
  void list(PacketView packet, const Connection& connection, std::uint32_t announcement) noexcept;
  [[nodiscard]] bool waits(const Unsettled& one) const noexcept;
  void settle(const Unsettled& one, bool passes) noexcept;

  const std::shared_ptr<TableAccess> access_;
  Table& table_;                            // its table
  const std::size_t mask_;                  // of both arrays
  std::unique_ptr<Said[]> said_;            // by sequence
  std::unique_ptr<Unsettled[]> unsettled_;  // from begin_ to end_, modulo their number
  std::size_t begin_ = 0, end_ = 0;
  bool in_order_ = true;  // their batch numbers never fall
  std::uint64_t number_ = 0;
  bool is_prepared_ = false;  // the burst that comes next
};

template <typename HandOver>
std::span<PacketView> Connections::keep_own(std::span<PacketView> burst, HandOver&& hand_over) noexcept {
  if (burst.empty()) return burst;
  expire(burst);
  std::size_t own = 0;
  for (std::size_t from = 0; from < burst.size(); from += Table::kMostToFind) {
    const std::span<PacketView> some = burst.subspan(from, std::min(burst.size() - from, Table::kMostToFind));
    std::array<std::optional<unsigned>, Table::kMostToFind> owners;
    table_.find_owners(some, owners);
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (!owners[i] || !hand_over(some[i], *owners[i])) burst[own++] = some[i];
    }
  }
  is_prepared_ = true;
  return burst.first(own);
}

}  // namespace penstock::conntrack
