// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/connections.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "packet/verdict.h"

namespace penstock::conntrack {

namespace {

/// Connections that have ended and are still known to packets of a burst and more.
constexpr std::size_t kLeastKept = 1024;

}  // namespace

Connections::Connections(std::shared_ptr<TableAccess> access, std::size_t most_packets)
    : access_(std::move(access)),
      table_(access_->table()),
      mask_(std::bit_ceil(most_packets) - 1),
      said_(std::make_unique<Said[]>(mask_ + 1)),
      unsettled_(std::make_unique<Unsettled[]>(mask_ + 1)) {
  // Packets of a connection that any of them ends may be among all that are not settled.
  table_.keep_ended(std::max<std::size_t>(mask_ + 1, kLeastKept));
}

void Connections::prepare(std::span<const PacketView> packets) noexcept {
  constexpr std::size_t kMost = 64;
  if (packets.empty() || said(packets.front()) || std::exchange(is_prepared_, false)) return;
  expire(packets);
  // The cache misses of all look-ups overlap.
  std::array<std::uint32_t, kMost> hashes;
  const std::size_t count = std::min(packets.size(), hashes.size());
  for (std::size_t i = 0; i < count; ++i) {
    hashes[i] = table_.likely_hash(packets[i]);
    table_.prefetch_bucket(hashes[i]);
  }
  for (std::size_t i = 0; i < count; ++i) table_.prefetch_connection(hashes[i]);
}

void Connections::expire(std::span<const PacketView> packets) noexcept {
  constexpr std::size_t kPacketsPerExpiry = 32;  // as Table::expire asks for
  for (std::size_t i = 0; i < packets.size(); i += kPacketsPerExpiry)
    table_.expire(packets.front().packet->timestamp_ns);
}

Tracked Connections::of(PacketView packet) noexcept {
  if (const std::optional<Tracked> before = said(packet)) return *before;
  const Tracked tracked = table_.track(packet, packet.packet->timestamp_ns);
  Said& about = said_[packet.packet->sequence & mask_];
  about = {.sequence = packet.packet->sequence,
           .any = true,
           .state = tracked.state,
           .direction = tracked.direction,
           .reason = tracked.reason,
           .expected = tracked.expected};
  if (tracked.connection == nullptr) return tracked;
  about.connection = table_.index_of(*tracked.connection);
  about.generation = tracked.connection->generation;
  const bool is_open = table_.is_open(*tracked.connection);
  about.may_be_translated = is_open || tracked.connection->translated();
  about.may_begin = is_open && add(packet, *tracked.connection);
  return tracked;
}

void Connections::leave_untracked(PacketView packet) noexcept {
  if (said(packet)) return;
  const Tracked tracked = table_.leave_untracked(packet, packet.packet->timestamp_ns);
  said_[packet.packet->sequence & mask_] = {.sequence = packet.packet->sequence, .any = true, .state = tracked.state};
}

std::optional<Tracked> Connections::said(PacketView packet) noexcept {
  const Said& about = said_[packet.packet->sequence & mask_];
  if (!about.any || about.sequence != packet.packet->sequence) return std::nullopt;
  Tracked tracked{
      .state = about.state, .direction = about.direction, .reason = about.reason, .expected = about.expected};
  if (about.connection != Connection::kNone) {
    Connection& connection = table_.at(about.connection);
    tracked.connection =
        connection.generation == about.generation ? &connection : table_.kept(about.connection, about.generation);
    tracked.lost = tracked.connection == nullptr && about.may_be_translated;
  }
  return tracked;
}

/// Returns whether the packet counts.
bool Connections::add(PacketView packet, Connection& connection) noexcept {
  table_.hold(connection);
  if (end_ - begin_ > mask_) {  // a caller that settles has room
    static_cast<void>(table_.confirm(connection));
    return false;
  }
  // It is a matter of its first packets only.
  if (connection.open_packets == std::numeric_limits<std::uint8_t>::max()) return false;
  ++connection.open_packets;
  list(packet, connection, 0);
  return true;
}

void Connections::list(PacketView packet, const Connection& connection, std::uint32_t announcement) noexcept {
  // A batch that came earlier may be asked about after a later one, if functions run on several processors.
  in_order_ &= begin_ == end_ || unsettled_[(end_ - 1) & mask_].number <= number_;
  unsettled_[end_++ & mask_] = {packet.packet, number_, table_.index_of(connection), connection.generation,
                                announcement};
}

bool Connections::needs_help(PacketView packet, const Tracked& tracked, bool translates) noexcept {
  if (tracked.connection == nullptr || !tracked.connection->has_helper()) return false;
  return (translates || !tracked.connection->translated()) && !said_[packet.packet->sequence & mask_].helped;
}

Helped Connections::help(PacketView packet, const Tracked& tracked) noexcept {
  said_[packet.packet->sequence & mask_].helped = true;
  const Helped helped = table_.help(packet, tracked);
  const std::uint32_t announcement = table_.announcement();
  if (announcement != 0 && end_ - begin_ <= mask_) list(packet, *tracked.connection, announcement);
  return helped;
}

void Connections::refuse(PacketView packet) noexcept {
  if (end_ == begin_ || unsettled_[(end_ - 1) & mask_].packet != packet.packet) return;
  settle(unsettled_[--end_ & mask_], false);
}

Connections::Kept Connections::let_wait(PacketView packet) noexcept {
  Kept kept;
  Said& about = said_[packet.packet->sequence & mask_];
  if (!about.any || about.sequence != packet.packet->sequence) return kept;
  about.waits = about.may_begin;
  kept.said_ = about;
  return kept;
}

void Connections::go_on(PacketView packet, const Kept& kept, bool is_asked) noexcept {
  Said about = kept.said_;
  if (!about.any) return;
  about.waits = false;
  if (is_asked) said_[about.sequence & mask_] = about;
  if (!about.may_begin) return;
  Connection& connection = table_.at(about.connection);
  if (connection.generation != about.generation || !table_.is_open(connection)) return;
  if (end_ - begin_ <= mask_) return list(packet, connection, 0);
  --connection.open_packets;
  static_cast<void>(table_.confirm(connection));
}

/// The packet does, and not only a part that a function keeps of it.
bool Connections::waits(const Unsettled& one) const noexcept {
  const Said& about = said_[one.packet->sequence & mask_];
  return one.packet->verdict.kind == VerdictKind::consume && about.waits && about.sequence == one.packet->sequence;
}

void Connections::settle(std::uint64_t last_number) noexcept {
  // What a function keeps for later has passed those before it.
  const auto passes = [](Verdict verdict) { return verdict.alive() || verdict.kind == VerdictKind::consume; };
  std::size_t left = begin_;
  for (std::size_t i = begin_; i != end_; ++i) {
    const Unsettled& one = unsettled_[i & mask_];
    if (one.number <= last_number) {
      if (!waits(one)) settle(one, passes(one.packet->verdict));
    } else if (in_order_) {
      begin_ = i;
      return;
    } else {
      unsettled_[left++ & mask_] = one;
    }
  }
  end_ = left;
  in_order_ |= begin_ == end_;
}

void Connections::settle_after(std::size_t position) noexcept {
  const std::size_t before = std::exchange(begin_, position);
  const bool in_order = in_order_;
  settle();
  in_order_ = in_order;
  begin_ = before;
  end_ = position;
}

void Connections::settle(const Unsettled& one, bool passes) noexcept {
  Connection& connection = table_.at(one.connection);
  if (connection.generation != one.generation) return;
  if (one.announcement != 0) {
    if (!passes) table_.forget_announcement(connection, one.announcement);
    return;
  }
  if (!table_.is_open(connection)) return;
  --connection.open_packets;
  const bool clashes = passes && !table_.confirm(connection);
  if (clashes || (!passes && connection.open_packets == 0)) {
    table_.forget(connection);
  }
}

}  // namespace penstock::conntrack
