// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/tracked_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "function/burst.h"

namespace penstock::firewall {

namespace {

classify::Connection connection_of(const conntrack::Tracked& tracked) noexcept {
  using classify::ConnectionState;
  classify::Connection connection;
  switch (tracked.state) {
    case conntrack::State::invalid: connection.state = ConnectionState::invalid; break;
    case conntrack::State::new_connection: connection.state = ConnectionState::begins; break;
    case conntrack::State::established: connection.state = ConnectionState::established; break;
    case conntrack::State::related: connection.state = ConnectionState::related; break;
    case conntrack::State::untracked: connection.state = ConnectionState::untracked; break;
  }
  connection.reply = tracked.direction == conntrack::Direction::reply;
  return connection;
}

}  // namespace

std::uint8_t connection_of_lone(PacketView packet, conntrack::Options options) {
  options.most_connections = 1;
  options.most_fragments = 1;
  options.checksum = false;
  conntrack::Table none(options);
  return number_of(connection_of(none.track(packet, packet.packet->timestamp_ns)));
}

void ConnectionCounters::publish(const conntrack::Counters& counters) noexcept {
  const auto words = std::bit_cast<Words>(counters);
  for (std::size_t i = 0; i < words.size(); ++i) words_[i].store(words[i], std::memory_order_relaxed);
}

conntrack::Counters ConnectionCounters::read() const noexcept {
  Words words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = words_[i].load(std::memory_order_relaxed);
  return std::bit_cast<conntrack::Counters>(words);
}

void TrackedStage::take_over(function::CpuStage& predecessor) noexcept {
  const auto* const before = dynamic_cast<const TrackedStage*>(&predecessor);
  if (before == nullptr) return;
  access_ = before->access_;
  table_ = before->table_;
  connections_.publish(table_->counters());
}

void TrackedStage::begin_batch() noexcept {
  access_->pass_boundary();
  connections_.publish(table_->counters());
}

void TrackedStage::process(std::span<PacketView> packets) noexcept {
  constexpr std::size_t kPacketsPerExpiry = 32;  // as Table::expire asks for
  for (std::size_t i = 0; i < packets.size(); i += kPacketsPerExpiry)
    table_->expire(packets.front().packet->timestamp_ns);
  prefetch(packets);
  KeyedPackets waiting;
  for (const PacketView packet : packets) {
    Verdict& verdict = packet.packet->verdict;
    const Standing standing = standing_of(packet.layout());
    if (standing != Standing::judged) {
      verdict = verdict_of(standing, verdict);
      continue;
    }
    const conntrack::Tracked tracked = table_->track(packet, packet.packet->timestamp_ns);
    if (tracked.state == conntrack::State::invalid && tracked.reason == conntrack::Reason::full) {
      verdict = Verdict::drop(DropReason::connections_full);
      continue;
    }
    waiting.packets[waiting.count] = packet;
    classify::make_key(packet, waiting.keys[waiting.count++], number_of(connection_of(tracked)));
    // A connection that begins is entered or forgotten before the next packet, which may belong to it.
    const bool begins = tracked.connection != nullptr && !tracked.connection->confirmed();
    if (begins || waiting.count == waiting.packets.size()) decide(waiting);
    if (!begins) continue;
    if (verdict.alive()) {
      table_->confirm(*tracked.connection);
    } else {
      table_->forget(*tracked.connection);
    }
  }
  decide(waiting);
  connections_.publish(table_->counters());
}

/// So that the cache misses of a burst's look-ups overlap.
void TrackedStage::prefetch(std::span<const PacketView> packets) const noexcept {
  std::array<std::uint32_t, function::kBurst> hashes;
  const std::size_t count = std::min(packets.size(), hashes.size());
  for (std::size_t i = 0; i < count; ++i) {
    hashes[i] = table_->likely_hash(packets[i]);
    table_->prefetch_bucket(hashes[i]);
  }
  for (std::size_t i = 0; i < count; ++i) table_->prefetch_connection(hashes[i]);
}

void TrackedStage::decide(KeyedPackets& waiting) noexcept {
  if (waiting.count == 0) return;
  Entries entries;
  decider_.decide(waiting, entries);
  const std::size_t last = waiting.count - 1;
  last_ = {waiting.packets[last].packet->sequence, entries[last], waiting.keys[last]};
  waiting.count = 0;
}

/// Called right after the packet was processed alone.
std::string TrackedStage::explain(PacketView packet) const {
  if (std::string why = explain_without_rules(standing_of(packet.layout())); !why.empty()) return why;
  if (last_.sequence != packet.packet->sequence) return "there is no room for another connection";
  return fmt::format("{}; connection: {}", decider_.explain(last_.entry, last_.key.family),
                     to_string(classify::connection_of(last_.key.connection)));
}

}  // namespace penstock::firewall
