// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Connection tracking as Linux does it (nf_conntrack): which connection a packet belongs to, and whether it fits there.
// One table for each worker; it owns the connections and allocates nothing after construction.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "conntrack/ended_connections.h"
#include "conntrack/event_queue.h"
#include "conntrack/fragments.h"
#include "conntrack/helpers.h"
#include "conntrack/nat_ports.h"
#include "conntrack/nat_range.h"
#include "conntrack/options.h"
#include "conntrack/port_blocks.h"
#include "conntrack/record.h"
#include "conntrack/shared_tuples.h"
#include "conntrack/store.h"
#include "conntrack/subscriber_ports.h"
#include "conntrack/tracked.h"
#include "conntrack/transport.h"

namespace penstock::conntrack {

struct Counters {
  std::uint64_t connections = 0;       // now
  std::uint64_t most_connections = 0;  // at any time
  std::uint64_t found = 0;             // packets of known connections
  std::uint64_t begun = 0;             // packets that begin a connection, confirmed or not
  std::uint64_t confirmed = 0;         // connections
  std::uint64_t related = 0;           // ICMP errors
  std::uint64_t untracked = 0;
  std::array<std::uint64_t, kReasons> invalid{};  // by Reason
  std::uint64_t early_drops = 0;                  // connections that made room for new ones
  std::uint64_t expired = 0;
  std::uint64_t ended = 0;         // by a RST, or by a packet that begins another connection with the same tuple
  std::uint64_t no_free_port = 0;  // new connections for which a translation has found no tuple that is free
  std::uint64_t clashes = 0;  // new connections that did not begin or were not confirmed, since another one has one
                              // of their tuples
  // Packets that got no port of a block (PortBlocks::Refusal); they count as `no_free_port` too.
  std::uint64_t over_block_limit = 0, no_free_block = 0, without_ports = 0;
  // Of helpers.
  std::uint64_t expectations = 0;              // now
  std::uint64_t announced = 0;                 // packets that announced a connection
  std::uint64_t arrived = 0;                   // connections that were expected
  std::uint64_t expectations_expired = 0;      // whose connection did not come in time
  std::uint64_t incomplete_announcements = 0;  // packets: Helped::incomplete
  std::uint64_t unexpected = 0;                // packets: Helped::no_room, Helped::too_long
};

struct FtpAnnouncement;

class Table {
 public:
  /// `blocks`: of ports, shared with other tables; null: its own, if the options have any.
  explicit Table(const Options& options, std::shared_ptr<PortBlocks> blocks = nullptr);

  /// Packets of this table's connections may come to other workers: no connection gets a tuple that one of theirs has,
  /// and they find this worker by `owners`. Called before the first packet.
  void share(std::shared_ptr<TupleOwners> owners, unsigned worker) {
    shared_ = std::make_unique<SharedTuples>(std::move(owners), worker, options_.most_connections);
    helpers_.share(shared_.get());
  }
  [[nodiscard]] bool shares() const noexcept { return shared_ != nullptr; }
  /// With share(), for at most so many packets that have come to this worker, before one of them is tracked: the other
  /// workers to which they belong. Later fragments go where their first one went. Also fetches what tracking needs.
  static constexpr std::size_t kMostToFind = 64;
  void find_owners(std::span<const PacketView> packets, std::span<std::optional<unsigned>> owners) noexcept;

  /// The connection of this packet, whose layout is known, and what the packet does to it. If it begins one
  /// (State::new_connection, not confirmed), call hold(), confirm() or forget() before the next packet is tracked; a
  /// connection that is none of them is forgotten then.
  ///
  /// `now_ns` may go back. By up to a minute, the packet counts as coming at the latest time that was seen; if it goes
  /// back further, or forward by more than a year, time goes on from there.
  [[nodiscard]] Tracked track(PacketView packet, std::uint64_t now_ns) noexcept;
  /// Instead of track(): the packet has no connection, and changes none.
  Tracked leave_untracked(PacketView packet, std::uint64_t now_ns) noexcept;
  /// Whether a connection that track() has just returned is not confirmed yet, but can be.
  [[nodiscard]] bool is_open(const Connection& connection) const noexcept {
    return !connection.confirmed() && &connection != ended_;
  }
  /// It is not known yet whether the packet passes. Until confirm() or forget() is called, the connection is treated as
  /// if it were confirmed: it is found, expires and makes room.
  void hold(Connection& connection) noexcept;
  /// Translates one end of a new connection (nat_range.h): decides which tuple its replies have. Call it for the
  /// destination, and then for the source, before confirm(); for connections that no rule translates with an empty
  /// range, once others are translated. Each end is translated once: does nothing if it was, or if the connection is
  /// confirmed. False if no tuple is free: drop the packet. nat.h writes the translation to packets.
  [[nodiscard]] bool translate(Connection& connection, NatKind kind, const NatRange& range) noexcept;
  /// The packet has passed. Does nothing for a connection that is confirmed already. False if another connection has
  /// one of its tuples, which happens only if some are translated: drop the packet, as Linux does.
  bool confirm(Connection& connection) noexcept;
  /// The packet was dropped: the connection never was. Does nothing for a confirmed one.
  void forget(Connection& connection) noexcept;
  /// Gives a TCP connection the helper for FTP (Options::ftp), if it does not have it; connections to its ports have it
  /// from their first packet on. Call it before the connection is confirmed. False: it cannot have one.
  bool give_helper(Connection& connection) noexcept;
  /// For a packet that track() has just returned with a connection that has a helper, and that has passed the rules:
  /// once for each. Finds out which connection it announces. If the connection is translated, so is the announcement,
  /// and the packet may become longer, by up to kMostFtpGrowth; from then on, sequence numbers change in all packets.
  [[nodiscard]] Helped help(PacketView packet, const Tracked& tracked) noexcept;
  /// The number of what that packet has announced, for forget_announcement(); 0: nothing.
  [[nodiscard]] std::uint32_t announcement() const noexcept { return announcement_; }
  /// The packet that announced it did not pass.
  void forget_announcement(const Connection& connection, std::uint32_t announcement) noexcept;

  /// Removes connections whose time is over. Looks at no more than 64; call it at least for every 32 packets.
  void expire(std::uint64_t now_ns) noexcept;

  /// Ends a confirmed connection before its time is over.
  void flush(Connection& connection) noexcept { remove(connection); }
  /// A function of the chain writes this end of translated packets.
  void will_write(NatKind kind) noexcept {
    written_ |= kind == NatKind::source ? Connection::kSourceNat : Connection::kDestinationNat;
  }
  /// Enters a connection of an earlier run, which lives on from the table's time. Does nothing if there is no room, if
  /// there is one with one of its tuples, or if it is translated and functions do not write both ends.
  void restore(const SavedConnection& saved) noexcept;
  /// Keeps connections that packets end for some more time: see kept(). `most`: a power of two.
  void keep_ended(std::size_t most) { kept_.keep(most); }
  /// The connection that was in memory `index`, of this generation, and was ended by a packet of about the last `most`
  /// of keep_ended(). It is only for reading, and counts as confirmed. Null: it is not known any more.
  [[nodiscard]] Connection* kept(std::uint32_t index, std::uint32_t generation) noexcept {
    return kept_.find(index, generation);
  }
  /// The table's time as that of packets.
  [[nodiscard]] std::uint64_t packet_time_ns() const noexcept { return now_ns_ - ahead_of_packets_; }
  /// Adds what becomes of confirmed connections to `events`, which is borrowed, while that wants it.
  void tell(EventQueue* events) noexcept { events_ = events; }

  // Prefetching for packets that will be tracked soon, in two steps: leave time between them, and before track().
  [[nodiscard]] std::uint32_t likely_hash(PacketView packet) const noexcept;
  void prefetch_bucket(std::uint32_t hash) const noexcept { store_.prefetch_bucket(hash); }
  void prefetch_connection(std::uint32_t hash) const noexcept { store_.prefetch_connection(hash); }

  /// The known connection that has this tuple, and in which direction.
  [[nodiscard]] Found look_up(const Tuple& tuple) noexcept { return find(tuple, store_.hash_of(tuple)); }

  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }
  [[nodiscard]] std::uint32_t index_of(const Connection& connection) const noexcept {
    return store_.index_of(connection);
  }
  [[nodiscard]] Connection& at(std::uint32_t index) noexcept { return *store_.at(index); }
  [[nodiscard]] std::uint64_t remaining_ns(const Connection& connection) const noexcept {
    return connection.expires_ns > now_ns_ ? connection.expires_ns - now_ns_ : 0;
  }
  /// Calls `use(connection)` for confirmed connections that have not expired, in memory order from position `from`.
  /// Looks at no more than `most` positions. Returns the position to go on from; 0 at the end.
  template <typename Use>
  std::uint32_t for_each(std::uint32_t from, std::uint32_t most, Use&& use);

 private:
  [[nodiscard]] Tracked judge(PacketView packet) noexcept;
  [[nodiscard]] Tracked follow_first_fragment(PacketView packet) noexcept;
  void remember_first_fragment(PacketView packet, const Transport& transport, const Tracked& tracked) noexcept;
  [[nodiscard]] Tracked track_icmp(PacketView packet, const Transport& transport) noexcept;
  [[nodiscard]] Tracked track_quoted(Bytes quoted, const Tuple& outer) noexcept;
  [[nodiscard]] Tracked track_tuple(PacketView packet, const Transport& transport) noexcept;
  [[nodiscard]] Tracked begin(PacketView packet, const Transport& transport, std::uint32_t hash) noexcept;
  [[nodiscard]] Outcome update(Connection& connection, Direction direction, PacketView packet,
                               const Transport& transport) noexcept;
  [[nodiscard]] Found find(const Tuple& tuple, std::uint32_t hash) noexcept;
  [[nodiscard]] Connection* take(const Tuple& original, const Tuple& reply) noexcept;
  [[nodiscard]] bool is_held(const Connection& connection) const noexcept {
    return is_open(connection) && &connection != unconfirmed_;
  }
  [[nodiscard]] bool clashes(const Connection& connection) noexcept;
  [[nodiscard]] static std::optional<Tuple> tuple_to_find(PacketView packet) noexcept;
  [[nodiscard]] std::optional<unsigned> owner_of_first_fragment(PacketView packet) const noexcept;
  [[nodiscard]] bool set_up_translation(Connection& connection, NatKind kind, const NatRange& range) noexcept;
  [[nodiscard]] bool take_if_free(const Connection& by, NatKind kind, const Tuple& tuple) noexcept;
  [[nodiscard]] bool take_from_ended(const Connection& by, NatKind kind, const Tuple& tuple) noexcept;
  [[nodiscard]] bool has_room_for_reply(const Connection& by, NatKind kind, const Tuple& reply) noexcept;
  [[nodiscard]] bool choose_tuple(const Connection& connection, NatKind kind, const NatRange& range,
                                  Tuple& tuple) noexcept;
  [[nodiscard]] bool choose_from_blocks(const Connection& connection, const NatRange& range, Tuple& tuple) noexcept;
  [[nodiscard]] bool restore_port(const Connection& connection) noexcept;
  [[nodiscard]] bool find_free_port(const Connection& connection, NatKind kind, const NatRange& range,
                                    Tuple& tuple) noexcept;
  void give_helper_by_port(Connection& connection) noexcept;
  [[nodiscard]] Helped read_line(PacketView packet, Connection& connection, Direction direction) noexcept;
  [[nodiscard]] Helped expect(PacketView packet, Connection& connection, Direction direction,
                              const FtpAnnouncement& said) noexcept;
  [[nodiscard]] bool choose_expected_port(Expectation& expectation) noexcept;
  void forget_expectation_of(const Connection& connection) noexcept;
  void expire_expectations() noexcept;
  [[nodiscard]] bool begin_expected(Connection& connection) noexcept;
  void follow_master(Connection& connection, const Tuple& announced, std::uint16_t port) noexcept;
  void live_for(Connection& connection, std::uint32_t seconds) noexcept;
  void keep(const Connection& connection) noexcept {
    if (connection.confirmed()) kept_.add(store_.index_of(connection), connection);
  }
  void remove(Connection& connection) noexcept;
  /// What is in no structure any more.
  void give_back(Connection& connection) noexcept {
    if (ports_ != nullptr) ports_->release(store_.index_of(connection));
    if (shared_ != nullptr) shared_->leave_both(store_.index_of(connection));
    store_.give_back(connection);
  }
  void set_time(std::uint64_t now_ns) noexcept;
  void settle() noexcept;
  void count(const Tracked& tracked) noexcept;
  void report(EventKind kind, const Connection& connection) noexcept {
    if (events_ != nullptr && events_->wanted()) events_->add(kind, connection, remaining_ns(connection));
  }

  Options options_;
  Store store_;
  std::unique_ptr<SharedTuples> shared_;  // null: all packets come to this worker
  EndedConnections kept_;
  Fragments fragments_;
  Counters counters_;
  RandomPorts random_ports_;
  Helpers helpers_;
  const std::unique_ptr<SubscriberPorts> ports_;  // null: sources get ports as in Linux
  std::uint32_t announcements_ = 0;               // their number, modulo 2^32
  std::uint32_t announcement_ = 0;                // of the last packet
  std::uint64_t now_ns_ = 0;                      // the table's time: begins with 0, and never goes back
  std::uint64_t ahead_of_packets_ = 0;            // how far it is ahead of the time of packets
  Connection* unconfirmed_ = nullptr;             // the last packet's
  std::uint32_t unconfirmed_hash_ = 0;
  std::uint16_t written_ = 0;    // ends of translated packets that functions write, as in Connection::status
  bool believed_ = false;        // whether the last packet moved its connection on, instead of only being let pass
  Connection* ended_ = nullptr;  // by the last packet, whose user may still read it
  EventQueue* events_ = nullptr;
};

template <typename Use>
std::uint32_t Table::for_each(std::uint32_t from, std::uint32_t most, Use&& use) {
  for (; most != 0 && from < store_.used(); --most, ++from) {
    Connection& connection = *store_.at(from);
    if (connection.confirmed() && connection.expires_ns > now_ns_) use(connection);
  }
  return from < store_.used() ? from : 0;
}

}  // namespace penstock::conntrack
