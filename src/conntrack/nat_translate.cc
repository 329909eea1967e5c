// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How a new connection gets its translation: nf_nat_setup_info of Linux. The functions are in the order of calls.

#include <algorithm>
#include <optional>

#include "conntrack/nat.h"
#include "conntrack/nat_choice.h"
#include "conntrack/table.h"
#include "packet/ip.h"

namespace penstock::conntrack {

bool Table::translate(Connection& connection, NatKind kind, const NatRange& range) noexcept {
  const std::uint16_t done = done_bit(kind);
  if (connection.confirmed() || (connection.status & done) != 0) return true;
  // Otherwise it would be found itself where its tuples must be free.
  const bool held = is_held(connection);
  if (held) store_.remove(connection);
  const bool is_free = set_up_translation(connection, kind, range);
  // Otherwise packets that follow the one that is dropped would leave untranslated.
  if (is_free) connection.status |= done;
  if (held) store_.insert(connection, store_.hash_of(connection.original));
  return is_free;
}

bool Table::set_up_translation(Connection& connection, NatKind kind, const NatRange& range) noexcept {
  const bool source = kind == NatKind::source;
  // What the other end sees by now. New connections have tuples with an inverse.
  const Tuple current = *inverse_of(connection.reply);
  Tuple tuple = current;
  const NatRange resolved = resolve_netmap(range, current, kind);
  const bool from_blocks = source && ports_ != nullptr && range.has(NatRange::kAddresses);
  const bool free =
      from_blocks ? choose_from_blocks(connection, resolved, tuple) : choose_tuple(connection, kind, resolved, tuple);
  if (tuple != current) {
    if (shared_ != nullptr && !source) shared_->leave_reply(store_.index_of(connection));
    connection.reply = *inverse_of(tuple);
    connection.status |= source ? Connection::kSourceNat : Connection::kDestinationNat;
    if (!source && helpers_.offered()) give_helper_by_port(connection);
  }
  // After a destination that is taken, another source port can still be free.
  if (free || !source) return true;
  ++counters_.no_free_port;
  return false;
}

/// Whether the tuple is free then.
bool Table::choose_tuple(const Connection& connection, NatKind kind, const NatRange& range, Tuple& tuple) noexcept {
  const bool random = range.random_port();
  if (kind == NatKind::source && !random) {
    if (is_source_in_range(tuple, range)) {
      if (take_if_free(connection, kind, tuple)) return true;
    } else {
      // All connections of one socket get the same source, if they can.
      Tuple as_before = tuple;
      const auto lies_in_range = [&](const Connection& before) noexcept {
        as_before.source = before.reply.destination;
        as_before.source_port = inverse_of(before.reply)->source_port;
        return is_source_in_range(as_before, range);
      };
      if (store_.find_source(tuple, lies_in_range) != nullptr && take_if_free(connection, kind, as_before)) {
        tuple = as_before;
        return true;
      }
    }
  }
  (kind == NatKind::source ? tuple.source : tuple.destination) = choose_address(tuple, kind, range);
  const bool keeps_port =
      !range.has(NatRange::kPorts) || (!range.has(NatRange::kOffset) && is_port_in_range(tuple, kind, range));
  if (!random && keeps_port) {
    const bool free = take_if_free(connection, kind, tuple);
    const bool only_choice = range.has(NatRange::kPorts) && range.first_port == range.last_port;
    if (free || only_choice) return free;
  }
  return find_free_port(connection, kind, range, tuple);
}

bool Table::choose_from_blocks(const Connection& connection, const NatRange& range, Tuple& tuple) noexcept {
  const auto taken = [&](const Tuple& other) noexcept { return !take_if_free(connection, NatKind::source, other); };
  switch (ports_->translate(store_.index_of(connection), tuple, range, taken)) {
    case PortBlocks::Refusal::none: return true;
    case PortBlocks::Refusal::per_host: ++counters_.over_block_limit; break;
    case PortBlocks::Refusal::no_block: ++counters_.no_free_block; break;
    case PortBlocks::Refusal::without_ports: ++counters_.without_ports; break;
  }
  return false;
}

/// Of a connection of an earlier run. True also if its source has no port of a block.
bool Table::restore_port(const Connection& connection) noexcept {
  const std::optional<Tuple> translated = inverse_of(connection.reply);
  if (!translated || translated->source == connection.original.source) return true;
  return ports_->restore(store_.index_of(connection), connection.original, *translated);
}

bool Table::find_free_port(const Connection& connection, NatKind kind, const NatRange& range, Tuple& tuple) noexcept {
  constexpr std::uint32_t kMostAttempts = 128, kFewestAttempts = 16;
  const PortSearch search = port_search(tuple, kind, range);
  if (search.count == 0) return take_if_free(connection, kind, tuple);
  std::uint16_t& port = port_of(tuple, kind);
  std::uint16_t offset = search.from_random ? random_ports_.next() : std::uint16_t{0};
  if (range.has(NatRange::kOffset)) offset = static_cast<std::uint16_t>(port - range.base_port);
  std::uint32_t attempts = std::min(search.count, kMostAttempts);
  // In fewer steps from another place each time, so that a range that is full costs little.
  while (true) {
    for (std::uint32_t left = attempts; left != 0; --left, ++offset) {
      port = static_cast<std::uint16_t>(search.first + offset % search.count);
      constexpr std::uint32_t kLast = 32;
      if (left > kLast ? take_if_free(connection, kind, tuple) : take_from_ended(connection, kind, tuple)) return true;
    }
    if (attempts >= search.count || attempts < kFewestAttempts) return false;
    attempts /= 2;
    offset = random_ports_.next();
  }
}

/// Whether no known connection has the tuple that replies to this one would have. If the source is being translated,
/// which comes last, the tuple is the connection's from here on.
bool Table::take_if_free(const Connection& by, NatKind kind, const Tuple& tuple) noexcept {
  const Tuple reply = *inverse_of(tuple);
  return look_up(reply).connection == nullptr && has_room_for_reply(by, kind, reply);
}

/// The same, but a TCP connection of this worker that has ended gives up its tuple to one whose sequence numbers come
/// later.
bool Table::take_from_ended(const Connection& by, NatKind kind, const Tuple& tuple) noexcept {
  const Tuple reply = *inverse_of(tuple);
  const auto [other, direction] = look_up(reply);
  if (other == nullptr) return has_room_for_reply(by, kind, reply);
  const auto sent_end = [](const Connection& connection) { return connection.tcp.sides[0].end; };
  if (tuple.protocol != ip_protocol::kTcp || by.tcp_state != TcpState::syn_sent || direction == Direction::original ||
      other->tcp_state < TcpState::time_wait || !other->source_translated() ||
      static_cast<std::int32_t>(sent_end(by) - sent_end(*other)) <= 0) {
    return false;
  }
  remove(*other);
  ++counters_.ended;
  return has_room_for_reply(by, kind, reply);
}

/// Among the connections of all workers.
bool Table::has_room_for_reply(const Connection& by, NatKind kind, const Tuple& reply) noexcept {
  // A host that talks to itself, from one port to the same.
  if (shared_ == nullptr || reply == by.original) return true;
  if (kind == NatKind::destination) return !shared_->is_taken(reply);
  return shared_->enter_reply(store_.index_of(by), reply);
}

/// Others may have been confirmed since it was translated.
bool Table::clashes(const Connection& connection) noexcept {
  return look_up(connection.original).connection != nullptr || look_up(connection.reply).connection != nullptr;
}

}  // namespace penstock::conntrack
