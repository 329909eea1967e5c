// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions are in the order in which a packet comes to them.

#include "conntrack/table.h"

#include <algorithm>
#include <utility>

#include "base/host_address.h"
#include "base/keyed_hash.h"
#include "base/nanoseconds.h"
#include "conntrack/icmp.h"
#include "conntrack/tcp.h"

namespace penstock::conntrack {
namespace {

Tracked invalid(Reason reason) noexcept { return {.state = State::invalid, .reason = reason}; }

TcpSegment segment_of(PacketView packet, const Transport& transport) noexcept {
  return read_segment(packet.tcp(), transport.length);
}

/// RFC 4861 §4.5, §4.6.3: the packet that a redirect is about, as far as it quotes it. Empty if it does not, or if no
/// router of this link has sent it (§8.1).
Bytes quotation_of_redirect(PacketView packet, Bytes redirect) noexcept {
  constexpr std::size_t kOptions = 40, kOptionHeader = 8;
  constexpr std::uint8_t kRedirectedHeader = 4, kMostHops = 255;
  const bool from_router =
      packet.frame[packet.layout().network_offset + 7] == kMostHops && is_link_local(packet.ipv6().source_address());
  if (!from_router || redirect.size() < kOptions + kOptionHeader || redirect[1] != 0) return {};
  if (redirect[kOptions] != kRedirectedHeader || redirect[kOptions + 1] == 0) return {};
  return redirect.subspan(kOptions + kOptionHeader);
}

/// The tuple of the direction to which an ICMP error belongs; nothing if it belongs to no connection. The error goes to
/// the sender of the quoted packet: the other direction of the connection. Another destination would let anyone who is
/// not in a connection claim to be related to it.
std::optional<Tuple> tuple_of_quoted(Bytes quoted, const Tuple& outer) noexcept {
  const std::optional<Tuple> tuple = read_quoted(quoted, outer.ip_version);
  const std::optional<Tuple> inverse = tuple ? inverse_of(*tuple) : std::nullopt;
  return inverse && inverse->destination == outer.destination ? inverse : std::nullopt;
}

std::unique_ptr<SubscriberPorts> make_ports(const Options& options, std::shared_ptr<PortBlocks> blocks) {
  if (!options.port_blocks) return nullptr;
  const std::uint64_t seed = options.seed.value_or(random_seed());
  if (blocks == nullptr) blocks = std::make_shared<PortBlocks>(*options.port_blocks, seed);
  return std::make_unique<SubscriberPorts>(std::move(blocks), options.most_connections, seed);
}

}  // namespace

Table::Table(const Options& options, std::shared_ptr<PortBlocks> blocks)
    : options_(options),
      store_(options.most_connections, options.seed.value_or(random_seed())),
      fragments_(options.most_fragments, options.seed.value_or(random_seed())),
      random_ports_(options.seed.value_or(random_seed())),
      helpers_(options, options.seed.value_or(random_seed())),
      ports_(make_ports(options, std::move(blocks))) {}

Tracked Table::track(PacketView packet, std::uint64_t now_ns) noexcept {
  settle();
  set_time(now_ns);
  const Tracked tracked = judge(packet);
  count(tracked);
  return tracked;
}

Tracked Table::leave_untracked(PacketView packet, std::uint64_t now_ns) noexcept {
  settle();
  set_time(now_ns);
  const Tracked tracked{.state = State::untracked};
  const PacketLayout& layout = packet.layout();
  // As if the datagram were one packet.
  if (layout.has(PacketLayout::kFragment) && !layout.has(PacketLayout::kLaterFragment))
    fragments_.remember({.fragment = read_fragment(packet), .connection = Connection::kNone, .state = tracked.state},
                        now_ns_);
  count(tracked);
  return tracked;
}

/// In steps, so that the cache misses of all look-ups overlap.
void Table::find_owners(std::span<const PacketView> packets, std::span<std::optional<unsigned>> owners) noexcept {
  struct Sought {
    std::optional<Tuple> tuple;  // for which there is no connection here
    std::uint32_t hash = 0;
    TupleOwners::Key key{};
  };
  std::array<Sought, kMostToFind> all;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    all[i].tuple = tuple_to_find(packets[i]);
    if (!all[i].tuple) continue;
    all[i].hash = store_.hash_of(*all[i].tuple);
    store_.prefetch_bucket(all[i].hash);
  }
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (all[i].tuple) store_.prefetch_connection(all[i].hash);
  }
  for (std::size_t i = 0; i < packets.size(); ++i) {
    Sought& one = all[i];
    if (!one.tuple) continue;
    if (store_.find(*one.tuple, one.hash).connection != nullptr) {
      one.tuple.reset();
    } else {
      one.key = shared_->fetch(*one.tuple);
    }
  }
  for (std::size_t i = 0; i < packets.size(); ++i) {
    const PacketLayout& layout = packets[i].layout();
    if (!all[i].tuple) {
      owners[i] = layout.has(PacketLayout::kLaterFragment) ? owner_of_first_fragment(packets[i]) : std::nullopt;
      continue;
    }
    owners[i] = shared_->other_owner(*all[i].tuple, all[i].key, helpers_.offered());
    if (owners[i] && layout.has(PacketLayout::kFragment)) {
      fragments_.remember({.fragment = read_fragment(packets[i]),
                           .connection = Connection::kNone,
                           .owner = static_cast<std::uint8_t>(*owners[i])},
                          now_ns_);
    }
  }
}

/// Of a later fragment.
std::optional<unsigned> Table::owner_of_first_fragment(PacketView packet) const noexcept {
  const PacketLayout& layout = packet.layout();
  if (!layout.is_ip() || !layout.has(PacketLayout::kNetworkHeader) || layout.has(PacketLayout::kMalformed)) return {};
  const FirstFragment* const first = fragments_.find(read_fragment(packet), now_ns_);
  return first != nullptr ? first->owner : std::nullopt;
}

/// The tuple by which the packet's connection is found, if it can have one by itself.
std::optional<Tuple> Table::tuple_to_find(PacketView packet) noexcept {
  const PacketLayout& layout = packet.layout();
  if (!layout.is_ip() || !layout.has(PacketLayout::kNetworkHeader) || layout.has(PacketLayout::kMalformed) ||
      layout.has(PacketLayout::kLaterFragment)) {
    return std::nullopt;
  }
  Transport transport;
  if (!read_transport(packet, transport)) return std::nullopt;
  const Tuple& tuple = transport.tuple;
  if (!is_icmp(tuple)) return tuple;
  switch (icmp_kind(tuple.protocol, transport.bytes[0])) {
    case IcmpKind::error: return tuple_of_quoted(transport.bytes.subspan(sizeof(IcmpHeader)), tuple);
    case IcmpKind::redirect: return tuple_of_quoted(quotation_of_redirect(packet, transport.bytes), tuple);
    case IcmpKind::untracked:
    case IcmpKind::other: return std::nullopt;
    case IcmpKind::request:
    case IcmpKind::reply: break;
  }
  return tuple;
}

Tracked Table::judge(PacketView packet) noexcept {
  const PacketLayout& layout = packet.layout();
  if (!layout.is_ip()) return {.state = State::untracked};
  if (!layout.has(PacketLayout::kNetworkHeader) || layout.has(PacketLayout::kMalformed)) {
    return invalid(Reason::malformed);
  }
  if (layout.has(PacketLayout::kLaterFragment)) return follow_first_fragment(packet);
  Transport transport;
  if (!read_transport(packet, transport)) return invalid(Reason::malformed);
  if (const auto error = find_error(packet, transport, options_.checksum)) return invalid(*error);
  const bool icmp = layout.transport == ip_protocol::kIcmp || layout.transport == ip_protocol::kIcmpv6;
  const Tracked tracked = icmp ? track_icmp(packet, transport) : track_tuple(packet, transport);
  if (layout.has(PacketLayout::kFragment) && tracked.connection != nullptr)
    remember_first_fragment(packet, transport, tracked);
  return tracked;
}

void Table::remember_first_fragment(PacketView packet, const Transport& transport, const Tracked& tracked) noexcept {
  FirstFragment first{.fragment = read_fragment(packet),
                      .state = tracked.state,
                      .direction = tracked.direction,
                      .expected = tracked.expected};
  first.connection = store_.index_of(*tracked.connection);
  first.generation = tracked.connection->generation;
  if (packet.layout().transport == ip_protocol::kTcp && believed_) {
    first.moves_window = true;
    first.tcp_offset = segment_of(packet, transport).end - first.fragment.to;
  }
  fragments_.remember(first, now_ns_);
}

Tracked Table::follow_first_fragment(PacketView packet) noexcept {
  const Fragment fragment = read_fragment(packet);
  const FirstFragment* const first = fragments_.find(fragment, now_ns_);
  if (first == nullptr || first->owner) return invalid(Reason::fragment);
  if (first->connection == Connection::kNone) return {.state = first->state};
  Connection& connection = *store_.at(first->connection);
  if (connection.generation != first->generation || connection.expires_ns <= now_ns_) return invalid(Reason::fragment);
  if (first->moves_window) {
    // The first fragment did not say how long the segment is. Without this, its acknowledgment would be invalid.
    TcpSide& side = connection.tcp.sides[static_cast<unsigned>(first->direction)];
    const std::uint32_t end = first->tcp_offset + fragment.to;
    if (after(end, side.end)) side.end = end;
  }
  return {.connection = &connection, .state = first->state, .direction = first->direction, .expected = first->expected};
}

Tracked Table::track_icmp(PacketView packet, const Transport& transport) noexcept {
  switch (icmp_kind(transport.tuple.protocol, transport.bytes[0])) {
    case IcmpKind::untracked: return {.state = State::untracked};
    case IcmpKind::error: return track_quoted(transport.bytes.subspan(sizeof(IcmpHeader)), transport.tuple);
    case IcmpKind::redirect: return track_quoted(quotation_of_redirect(packet, transport.bytes), transport.tuple);
    case IcmpKind::other: return invalid(Reason::no_connection);
    case IcmpKind::request:
    case IcmpKind::reply: break;
  }
  return track_tuple(packet, transport);
}

Tracked Table::track_quoted(Bytes quoted, const Tuple& outer) noexcept {
  const std::optional<Tuple> tuple = tuple_of_quoted(quoted, outer);
  if (!tuple) return invalid(Reason::no_connection);
  const Found found = find(*tuple, store_.hash_of(*tuple));
  if (found.connection == nullptr) return invalid(Reason::no_connection);
  return {.connection = found.connection, .state = State::related, .direction = found.direction};
}

Tracked Table::track_tuple(PacketView packet, const Transport& transport) noexcept {
  const std::uint32_t hash = store_.hash_of(transport.tuple);
  const auto [connection, direction] = find(transport.tuple, hash);
  if (connection == nullptr) return begin(packet, transport, hash);
  const Store::Worth worth = Store::worth_of(*connection);
  const std::uint16_t status = connection->status;
  const TcpState tcp_state = connection->tcp_state;
  const Outcome outcome = update(*connection, direction, packet, transport);
  believed_ = outcome.kind == Outcome::Kind::refreshed;
  store_.revalue(*connection, worth);
  switch (outcome.kind) {
    case Outcome::Kind::refreshed: live_for(*connection, outcome.timeout_s); break;
    case Outcome::Kind::unchanged: break;
    case Outcome::Kind::ended:
      if (!connection->confirmed()) {
        // Its first packets still have to pass the chain, and may need it there. No other packet finds it.
        live_for(*connection, 0);
        break;
      }
      report(EventKind::ended, *connection);
      forget_expectation_of(*connection);
      keep(*connection);
      store_.remove(*connection);
      connection->status &= static_cast<std::uint16_t>(~Connection::kConfirmed);
      ended_ = connection;
      ++counters_.ended;
      break;
    case Outcome::Kind::reopened:
      keep(*connection);
      remove(*connection);
      ++counters_.ended;
      return begin(packet, transport, hash);
    case Outcome::Kind::shortened: live_for(*connection, outcome.timeout_s); [[fallthrough]];
    case Outcome::Kind::invalid: return invalid(outcome.reason);
  }
  if (direction == Direction::reply) connection->status |= Connection::kSeenReply;
  const bool changed = connection->status != status || connection->tcp_state != tcp_state;
  if (changed && connection->confirmed()) report(EventKind::changed, *connection);
  const bool expected = !connection->seen_reply() && connection->expected();
  return {.connection = connection,
          .state = connection->seen_reply() ? State::established
                   : expected               ? State::related
                                            : State::new_connection,
          .direction = direction,
          .expected = expected};
}

Found Table::find(const Tuple& tuple, std::uint32_t hash) noexcept {
  const Found found = store_.find(tuple, hash);
  if (found.connection == nullptr || found.connection->expires_ns > now_ns_) return found;
  remove(*found.connection);
  ++counters_.expired;
  return {};
}

Tracked Table::begin(PacketView packet, const Transport& transport, std::uint32_t hash) noexcept {
  const std::uint8_t protocol = transport.tuple.protocol;
  const bool tcp = protocol == ip_protocol::kTcp;
  const bool icmp = protocol == ip_protocol::kIcmp || protocol == ip_protocol::kIcmpv6;
  const std::optional<Tuple> reply = inverse_of(transport.tuple);
  if (!reply || (tcp && !begins_tcp(segment_of(packet, transport), options_)) ||
      (icmp && icmp_kind(protocol, transport.bytes[0]) != IcmpKind::request)) {
    return invalid(Reason::no_connection);
  }
  Connection* const connection = take(transport.tuple, *reply);
  if (connection == nullptr) return invalid(Reason::full);
  if (tcp) begin_tcp(*connection, segment_of(packet, transport));
  if (protocol == ip_protocol::kUdp) connection->udp_stream_from_ns = now_ns_ + 2 * kNsPerSecond;
  const Outcome outcome = update(*connection, Direction::original, packet, transport);
  if (outcome.kind == Outcome::Kind::invalid) {
    give_back(*connection);
    return invalid(outcome.reason);
  }
  // Another worker may have got a connection with this tuple since its owner was looked up.
  if (shared_ != nullptr && !shared_->enter_original(store_.index_of(*connection), connection->original)) {
    give_back(*connection);
    ++counters_.clashes;
    return invalid(Reason::full);
  }
  connection->expires_ns = now_ns_ + outcome.timeout_s * kNsPerSecond;
  unconfirmed_ = connection;
  unconfirmed_hash_ = hash;
  believed_ = true;
  const bool expected = begin_expected(*connection);
  if (!expected && helpers_.offered()) give_helper_by_port(*connection);
  return {.connection = connection,
          .state = expected ? State::related : State::new_connection,
          .direction = Direction::original,
          .expected = expected};
}

Outcome Table::update(Connection& connection, Direction direction, PacketView packet,
                      const Transport& transport) noexcept {
  const Timeouts& timeouts = options_.timeouts;
  const bool replied = connection.seen_reply();
  switch (transport.tuple.protocol) {
    case ip_protocol::kTcp: {
      TcpSegment segment = segment_of(packet, transport);
      if ((connection.status & Connection::kSequenceAdjusted) != 0) {
        const SequenceShifts& shifts = helpers_.of(store_.index_of(connection)).shifts;
        segment.ack_shift = shifts[static_cast<unsigned>(opposite(direction))].of(segment.ack - 1);
      }
      return track_tcp(connection, direction, segment, options_, remaining_ns(connection) / kNsPerSecond);
    }
    case ip_protocol::kUdp: {
      // A stream is what goes on after both sides were seen: a query and its answer are none.
      const bool stream = replied && now_ns_ > connection.udp_stream_from_ns;
      if (stream) connection.status |= Connection::kAssured;
      return Outcome::refreshed(stream ? timeouts.udp_stream : timeouts.udp);
    }
    case ip_protocol::kUdpLite:
      if (replied) connection.status |= Connection::kAssured;
      return Outcome::refreshed(replied ? timeouts.udp_stream : timeouts.udp);
    case ip_protocol::kGre:
      if (replied) connection.status |= Connection::kAssured;
      return Outcome::refreshed(replied ? timeouts.gre_stream : timeouts.gre);
    case ip_protocol::kIcmp: return Outcome::refreshed(timeouts.icmp);
    case ip_protocol::kIcmpv6: return Outcome::refreshed(timeouts.icmpv6);
    default: return Outcome::refreshed(timeouts.generic);
  }
}

Connection* Table::take(const Tuple& original, const Tuple& reply) noexcept {
  if (Connection* const connection = store_.take(original, reply)) return connection;
  constexpr std::uint32_t kMost = 8;
  store_.expire(now_ns_, kMost, [this](Connection& connection) noexcept {
    remove(connection);
    ++counters_.expired;
  });
  if (Connection* const connection = store_.take(original, reply)) return connection;
  Connection* const victim = store_.least_valuable();
  if (victim == nullptr) return nullptr;
  keep(*victim);
  remove(*victim);
  ++counters_.early_drops;
  return store_.take(original, reply);
}

void Table::live_for(Connection& connection, std::uint32_t seconds) noexcept {
  connection.expires_ns = now_ns_ + seconds * kNsPerSecond;
  store_.reschedule(connection);
}

void Table::remove(Connection& connection) noexcept {
  if (connection.confirmed()) report(EventKind::ended, connection);
  forget_expectation_of(connection);
  store_.remove(connection);
  give_back(connection);
  counters_.connections = store_.size();
}

void Table::hold(Connection& connection) noexcept {
  if (&connection != unconfirmed_) return;
  unconfirmed_ = nullptr;
  store_.insert(connection, unconfirmed_hash_);
  counters_.connections = store_.size();
  counters_.most_connections = std::max(counters_.most_connections, counters_.connections);
}

void Table::restore(const SavedConnection& saved) noexcept {
  settle();
  const Record& record = saved.record;
  constexpr std::uint16_t kBothEnds = Connection::kSourceNat | Connection::kDestinationNat;
  // Its packets would leave untranslated in one of the directions.
  if ((record.status & kBothEnds) != 0 && written_ != kBothEnds) return;
  const std::uint32_t hash = store_.hash_of(record.original);
  if (store_.find(record.original, hash).connection != nullptr ||
      store_.find(record.reply, store_.hash_of(record.reply)).connection != nullptr) {
    return;
  }
  Connection* const connection = store_.take(record.original, record.reply);
  if (connection == nullptr) return;
  if (ports_ != nullptr && !restore_port(*connection)) return give_back(*connection);
  if (shared_ != nullptr && !(shared_->enter_original(store_.index_of(*connection), record.original) &&
                              has_room_for_reply(*connection, NatKind::source, record.reply))) {
    return give_back(*connection);
  }
  connection->mark = record.mark;
  connection->status = record.status | Connection::kConfirmed;
  if (connection->has_helper()) {
    if (helpers_.offered()) {
      // Where its lines begin was not saved.
      helpers_.begin(store_.index_of(*connection));
      helpers_.of(store_.index_of(*connection)).lines.fill(LineStarts::picked_up());
    } else {
      connection->status &= static_cast<std::uint16_t>(~Connection::kHelper);
    }
  }
  connection->tcp_state = record.tcp_state;
  if (record.original.protocol == ip_protocol::kTcp) connection->tcp = saved.tcp;
  if (record.original.protocol == ip_protocol::kUdp) connection->udp_stream_from_ns = now_ns_ + saved.udp_stream_in_ns;
  connection->expires_ns = now_ns_ + record.remaining_ns;
  store_.insert(*connection, hash);
  counters_.connections = store_.size();
  counters_.most_connections = std::max(counters_.most_connections, counters_.connections);
}

bool Table::confirm(Connection& connection) noexcept {
  if (!is_open(connection)) return true;
  if (is_held(connection) && connection.expires_ns <= now_ns_) {  // another packet has ended it
    remove(connection);
    ++counters_.ended;
    return true;
  }
  // Where the source has been translated last, no other connection can have its tuples since then.
  const bool is_known_to_be_alone =
      is_held(connection) && (connection.status & Connection::kSourceNatDone) != 0 && !connection.expected();
  if (shared_ != nullptr) {
    if (!shared_->has_reply(store_.index_of(connection)) &&
        !has_room_for_reply(connection, NatKind::source, connection.reply)) {
      ++counters_.clashes;
      return false;
    }
  } else if ((store_.has_translated() || connection.translated()) && !is_known_to_be_alone) {
    const bool held = is_held(connection);
    if (held) store_.remove(connection);
    const bool is_alone = !clashes(connection);
    if (held) store_.insert(connection, store_.hash_of(connection.original));
    if (!is_alone) {
      ++counters_.clashes;
      return false;
    }
  }
  hold(connection);
  connection.status |= Connection::kConfirmed;
  ++counters_.confirmed;
  report(EventKind::begun, connection);
  return true;
}

void Table::forget(Connection& connection) noexcept {
  if (&connection == unconfirmed_) {
    settle();
  } else if (is_open(connection)) {
    remove(connection);
  }
}

void Table::expire(std::uint64_t now_ns) noexcept {
  constexpr std::uint32_t kMost = 64;
  settle();
  set_time(now_ns);
  store_.expire(now_ns_, kMost, [this](Connection& connection) noexcept {
    remove(connection);
    ++counters_.expired;
  });
  if (ports_ != nullptr) ports_->expire();
  // Others may expect the same.
  if (shared_ != nullptr && helpers_.offered()) expire_expectations();
}

std::uint32_t Table::likely_hash(PacketView packet) const noexcept {
  const PacketLayout& layout = packet.layout();
  if (!layout.is_ip() || !layout.has(PacketLayout::kNetworkHeader) || layout.has(PacketLayout::kMalformed) ||
      layout.has(PacketLayout::kLaterFragment)) {
    return 0;
  }
  Transport transport;
  return read_transport(packet, transport) ? store_.hash_of(transport.tuple) : 0;
}

/// A clock that was set, or another capture, is told from packets of several ports that come out of order.
void Table::set_time(std::uint64_t now_ns) noexcept {
  constexpr std::uint64_t kMostForward = 365 * 86'400 * kNsPerSecond;
  const std::uint64_t time_ns = now_ns + ahead_of_packets_;  // both may wrap; what counts is the difference
  if (time_ns - now_ns_ <= kMostForward) {
    now_ns_ = time_ns;
  } else if (now_ns_ - time_ns > kMostBackNs) {
    ahead_of_packets_ += now_ns_ - time_ns;
  }
  if (ports_ != nullptr) ports_->set_time(now_ns_, packet_time_ns());
}

/// The last packet's connection, if it is in no structure, ends here.
void Table::settle() noexcept {
  for (Connection** const left : {&unconfirmed_, &ended_}) {
    if (*left != nullptr) give_back(**left);
    *left = nullptr;
  }
}

void Table::count(const Tracked& tracked) noexcept {
  counters_.connections = store_.size();
  switch (tracked.state) {
    case State::invalid: ++counters_.invalid[static_cast<unsigned>(tracked.reason)]; break;
    case State::new_connection: ++(tracked.connection == unconfirmed_ ? counters_.begun : counters_.found); break;
    case State::established: ++counters_.found; break;
    case State::related:
      if (tracked.is_error()) {
        ++counters_.related;
      } else {
        ++(tracked.connection == unconfirmed_ ? counters_.begun : counters_.found);
      }
      break;
    case State::untracked: ++counters_.untracked; break;
  }
}

}  // namespace penstock::conntrack
