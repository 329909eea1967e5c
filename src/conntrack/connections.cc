// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/connections.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "packet/verdict.h"

namespace penstock::conntrack {

Connections::Connections(std::shared_ptr<TableAccess> access, std::size_t most_packets)
    : access_(std::move(access)),
      table_(access_->table()),
      mask_(std::bit_ceil(most_packets) - 1),
      said_(std::make_unique<Said[]>(mask_ + 1)),
      unsettled_(std::make_unique<Unsettled[]>(mask_ + 1)) {}

void Connections::prepare(std::span<const PacketView> packets) noexcept {
  constexpr std::size_t kMost = 64, kPacketsPerExpiry = 32;  // as Table::expire asks for
  if (packets.empty() || said(packets.front())) return;
  for (std::size_t i = 0; i < packets.size(); i += kPacketsPerExpiry)
    table_.expire(packets.front().packet->timestamp_ns);
  // The cache misses of all look-ups overlap.
  std::array<std::uint32_t, kMost> hashes;
  const std::size_t count = std::min(packets.size(), hashes.size());
  for (std::size_t i = 0; i < count; ++i) {
    hashes[i] = table_.likely_hash(packets[i]);
    table_.prefetch_bucket(hashes[i]);
  }
  for (std::size_t i = 0; i < count; ++i) table_.prefetch_connection(hashes[i]);
}

Tracked Connections::of(PacketView packet) noexcept {
  if (const std::optional<Tracked> before = said(packet)) return *before;
  const Tracked tracked = table_.track(packet, packet.packet->timestamp_ns);
  Said& about = said_[packet.packet->sequence & mask_];
  about = {.sequence = packet.packet->sequence,
           .any = true,
           .state = tracked.state,
           .direction = tracked.direction,
           .reason = tracked.reason};
  if (tracked.connection == nullptr) return tracked;
  about.connection = table_.index_of(*tracked.connection);
  about.generation = tracked.connection->generation;
  const bool is_open = table_.is_open(*tracked.connection);
  about.may_be_translated = is_open || tracked.connection->translated();
  if (is_open) add(packet, *tracked.connection);
  return tracked;
}

std::optional<Tracked> Connections::said(PacketView packet) noexcept {
  const Said& about = said_[packet.packet->sequence & mask_];
  if (!about.any || about.sequence != packet.packet->sequence) return std::nullopt;
  Tracked tracked{.state = about.state, .direction = about.direction, .reason = about.reason};
  if (about.connection != Connection::kNone) {
    Connection& connection = table_.at(about.connection);
    if (connection.generation == about.generation) tracked.connection = &connection;
    tracked.lost = tracked.connection == nullptr && about.may_be_translated;
  }
  return tracked;
}

void Connections::add(PacketView packet, Connection& connection) noexcept {
  table_.hold(connection);
  if (end_ - begin_ > mask_) return static_cast<void>(table_.confirm(connection));  // a caller that settles has room
  // It is a matter of its first packets only.
  if (connection.open_packets == std::numeric_limits<std::uint8_t>::max()) return;
  ++connection.open_packets;
  // A batch that came earlier may be asked about after a later one, if functions run on several processors.
  in_order_ &= begin_ == end_ || unsettled_[(end_ - 1) & mask_].number <= number_;
  unsettled_[end_++ & mask_] = {packet.packet, number_, table_.index_of(connection), connection.generation};
}

void Connections::refuse(PacketView packet) noexcept {
  if (end_ == begin_ || unsettled_[(end_ - 1) & mask_].packet != packet.packet) return;
  settle(unsettled_[--end_ & mask_], false);
}

void Connections::settle(std::uint64_t last_number) noexcept {
  // What a function keeps for later has passed those before it.
  const auto passes = [](Verdict verdict) { return verdict.alive() || verdict.kind == VerdictKind::consume; };
  std::size_t left = begin_;
  for (std::size_t i = begin_; i != end_; ++i) {
    const Unsettled& one = unsettled_[i & mask_];
    if (one.number <= last_number) {
      settle(one, passes(one.packet->verdict));
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
  settle();
  begin_ = before;
  end_ = position;
}

void Connections::settle(const Unsettled& one, bool passes) noexcept {
  Connection& connection = table_.at(one.connection);
  if (connection.generation != one.generation || !table_.is_open(connection)) return;
  --connection.open_packets;
  const bool clashes = passes && !table_.confirm(connection);
  if (clashes || (!passes && connection.open_packets == 0)) {
    table_.forget(connection);
  }
}

}  // namespace penstock::conntrack
