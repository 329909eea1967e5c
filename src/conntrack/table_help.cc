// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a table does for the helper of FTP: nf_conntrack_ftp, nf_nat_ftp and nf_nat_follow_master of Linux. The
// functions are in the order in which they are needed: a control connection gets the helper, one of its packets
// announces a data connection, and that begins.

#include <algorithm>
#include <array>

#include "conntrack/ftp.h"
#include "conntrack/replace_payload.h"
#include "conntrack/table.h"
#include "packet/ip.h"

namespace penstock::conntrack {

bool Table::give_helper(Connection& connection) noexcept {
  if (!helpers_.offered() || connection.original.protocol != ip_protocol::kTcp || connection.expected()) return false;
  if (connection.has_helper()) return true;
  helpers_.begin(store_.index_of(connection));
  connection.status |= Connection::kHelper;
  return true;
}

void Table::give_helper_by_port(Connection& connection) noexcept {
  if (helpers_.has_port(connection.original.destination_port) || helpers_.has_port(connection.reply.source_port))
    static_cast<void>(give_helper(connection));
}

Helped Table::help(PacketView packet, const Tracked& tracked) noexcept {
  announcement_ = 0;
  const PacketLayout& layout = packet.layout();
  Connection& connection = *tracked.connection;
  if (tracked.is_error() || layout.transport != ip_protocol::kTcp || !layout.has(PacketLayout::kTransportHeader))
    return Helped::passes;
  const bool is_shifted = (connection.status & Connection::kSequenceAdjusted) != 0;
  const bool is_whole = !layout.has(PacketLayout::kFragment) && !layout.has(PacketLayout::kTruncated);
  // Before there was traffic of both sides, nobody can have agreed on anything.
  if (tracked.state == State::established && is_whole) {
    const Helped helped = read_line(packet, connection, tracked.direction);
    if (helped != Helped::passes) return helped;
  }
  if (is_shifted) {
    shift_sequence_numbers(packet, helpers_.of(store_.index_of(connection)).shifts, tracked.direction);
  }
  return Helped::passes;
}

Helped Table::read_line(PacketView packet, Connection& connection, Direction direction) noexcept {
  const PacketLayout& layout = packet.layout();
  const Bytes payload{packet.frame + layout.payload_offset, layout.end - layout.payload_offset};
  if (payload.empty()) return Helped::passes;
  const std::uint32_t sequence = packet.tcp().sequence.value();
  const std::uint32_t end = sequence + static_cast<std::uint32_t>(payload.size());
  const bool ends_line = payload.back() == '\n';
  LineStarts& lines = helpers_.of(store_.index_of(connection)).lines[static_cast<unsigned>(direction)];
  Helped helped = Helped::passes;
  if (lines.begins_at(sequence)) {
    const Tuple& own = connection.tuple(direction);
    const FtpAnnouncement said = read_ftp(payload, direction, own.ip_version, own.source);
    if (said.kind == FtpAnnouncement::Kind::incomplete) {
      ++counters_.incomplete_announcements;
      return Helped::incomplete;
    }
    // Otherwise a host could open ways to others.
    if (said.kind == FtpAnnouncement::Kind::found && said.address == own.source)
      helped = expect(packet, connection, direction, said);
  }
  if (ends_line) lines.add(end);
  return helped;
}

Helped Table::expect(PacketView packet, Connection& connection, Direction direction,
                     const FtpAnnouncement& said) noexcept {
  const std::uint32_t index = store_.index_of(connection);
  const bool translated = connection.translated();
  // From where the announcement goes to, to where it seems to come from there.
  const Tuple& other = connection.tuple(opposite(direction));
  Expectation expectation{
      .tuple = other, .master = index, .announced_port = said.port, .direction = direction, .translated = translated};
  expectation.tuple.source_port = 0;
  if (said.port == 0 && !translated) return Helped::passes;
  expire_expectations();
  helpers_.forget_expectation_of(index);
  const bool has_room = said.port != 0 && !helpers_.expectations().full() && choose_expected_port(expectation);
  if (!has_room) {
    counters_.expectations = helpers_.expectations().size();
    ++counters_.unexpected;
    return Helped::no_room;
  }
  announcement_ = ++announcements_ != 0 ? announcements_ : ++announcements_;
  expectation.announcement = announcement_;
  helpers_.expect(expectation, now_ns_);
  counters_.expectations = helpers_.expectations().size();
  ++counters_.announced;
  if (!translated) return Helped::passes;

  std::array<char, kMostFtpNumbers + 1> text;
  const std::size_t length =
      write_ftp(text, said.command, other.ip_version, other.destination, expectation.tuple.destination_port);
  if (!replace_payload(packet, said.offset, said.length,
                       {reinterpret_cast<const std::uint8_t*>(text.data()), length})) {
    helpers_.forget_expectation_of(index);
    counters_.expectations = helpers_.expectations().size();
    announcement_ = 0;
    ++counters_.unexpected;
    return Helped::too_long;
  }
  if (length != said.length) {
    helpers_.of(index).shifts[static_cast<unsigned>(direction)].add(packet.tcp().sequence.value(),
                                                                    static_cast<std::uint32_t>(length) - said.length);
    connection.status |= Connection::kSequenceAdjusted;
  }
  return Helped::passes;
}

/// Gives it the port at which the connection can be expected: the announced one, or another one if its addresses are
/// translated. False: there is none.
bool Table::choose_expected_port(Expectation& expectation) noexcept {
  constexpr std::uint32_t kMostAttempts = 128, kLastPort = 65'535;
  const std::uint32_t more = kLastPort - expectation.announced_port;
  std::uint32_t attempts = expectation.translated ? std::min(more, kMostAttempts) : 0;
  std::uint32_t port = expectation.announced_port;
  while (true) {
    expectation.tuple.destination_port = static_cast<std::uint16_t>(port);
    if (helpers_.expectations().find(expectation.tuple) == Expectations::kNone) {
      if (shared_ == nullptr) return true;
      expectation.place = shared_->enter_expected(expectation.tuple);
      if (TupleOwners::is_entered(expectation.place)) return true;
    }
    if (attempts-- == 0) return false;
    port = expectation.announced_port + random_ports_.next() % more;
  }
}

void Table::forget_announcement(const Connection& connection, std::uint32_t announcement) noexcept {
  if (!connection.has_helper()) return;
  const std::uint32_t expectation = helpers_.of(store_.index_of(connection)).expectation;
  if (expectation == Expectations::kNone || helpers_.expectations().at(expectation).announcement != announcement)
    return;
  helpers_.remove(expectation);
  counters_.expectations = helpers_.expectations().size();
}

void Table::forget_expectation_of(const Connection& connection) noexcept {
  if (!connection.has_helper()) return;
  helpers_.forget_expectation_of(store_.index_of(connection));
  counters_.expectations = helpers_.expectations().size();
}

void Table::expire_expectations() noexcept {
  const Expectations& all = helpers_.expectations();
  for (std::uint32_t old = all.oldest_expired(now_ns_); old != Expectations::kNone; old = all.oldest_expired(now_ns_)) {
    helpers_.remove(old);
    ++counters_.expectations_expired;
  }
  counters_.expectations = all.size();
}

bool Table::begin_expected(Connection& connection) noexcept {
  if (helpers_.expectations().empty()) return false;
  expire_expectations();
  const std::uint32_t index = helpers_.expectations().find(connection.original);
  if (index == Expectations::kNone) return false;
  const Expectation expectation = helpers_.expectations().at(index);
  const Connection& master = *store_.at(expectation.master);
  if (master.expires_ns <= now_ns_) return false;
  helpers_.remove(index);
  counters_.expectations = helpers_.expectations().size();
  ++counters_.arrived;
  connection.status |= Connection::kExpected;
  connection.mark = master.mark;
  if (expectation.translated)
    follow_master(connection, master.tuple(expectation.direction), expectation.announced_port);
  return true;
}

/// `announced`: the tuple of the packet that announced it. If a tuple is taken, confirm() finds that out.
void Table::follow_master(Connection& connection, const Tuple& announced, std::uint16_t port) noexcept {
  const Tuple ends = announced;  // its connection may end below
  const NatRange source{
      .first_address = ends.destination, .last_address = ends.destination, .flags = NatRange::kAddresses};
  NatRange destination{
      .first_address = ends.source, .last_address = ends.source, .first_port = port, .last_port = port};
  destination.flags = NatRange::kAddresses | NatRange::kPorts;
  const std::uint64_t no_free_port = counters_.no_free_port;
  static_cast<void>(translate(connection, NatKind::source, source));
  static_cast<void>(translate(connection, NatKind::destination, destination));
  counters_.no_free_port = no_free_port;
}

}  // namespace penstock::conntrack
