// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/tracked_stage.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "classify/key.h"
#include "nf/firewall/judge_core.h"
#include "packet/parse_core.h"

namespace penstock::firewall {

namespace {

using conntrack::PacketConnection;

/// Their numbers are those of classify.
constexpr bool is_numbered(conntrack::State state, classify::ConnectionState as) noexcept {
  return static_cast<unsigned>(state) == static_cast<unsigned>(as);
}
static_assert(is_numbered(conntrack::State::invalid, classify::ConnectionState::invalid) &&
              is_numbered(conntrack::State::new_connection, classify::ConnectionState::begins) &&
              is_numbered(conntrack::State::established, classify::ConnectionState::established) &&
              is_numbered(conntrack::State::related, classify::ConnectionState::related) &&
              is_numbered(conntrack::State::untracked, classify::ConnectionState::untracked));
static_assert(number_of(classify::Connection{classify::ConnectionState::invalid, true, false, false}) ==
                  PacketConnection::kReply &&
              number_of(classify::Connection{classify::ConnectionState::invalid, false, true, false}) ==
                  PacketConnection::kSourceNat &&
              number_of(classify::Connection{classify::ConnectionState::invalid, false, false, true}) ==
                  PacketConnection::kDestinationNat);

}  // namespace

classify::Connection connection_of(const conntrack::Tracked& tracked) noexcept {
  return classify::connection_of(PacketConnection::of(tracked).number);
}

bool has_no_room(const conntrack::Tracked& tracked) noexcept { return PacketConnection::of(tracked).full != 0; }

void ReadingStage::process(std::span<PacketView> packets) noexcept {
  KeyedPackets waiting;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    Verdict& verdict = packets[i].packet->verdict;
    const Standing standing = standing_of(packets[i], route_);
    if (standing != Standing::judged) {
      verdict = verdict_of(standing, verdict);
      continue;
    }
    if (connections_[i].full != 0) {
      verdict = Verdict::drop(DropReason::connections_full);
      continue;
    }
    waiting.packets[waiting.count] = packets[i];
    classify::make_key(packets[i], waiting.keys[waiting.count++], connections_[i].number);
    if (waiting.count < waiting.packets.size()) continue;
    decider_.decide(waiting);
    waiting.count = 0;
  }
  if (waiting.count > 0) decider_.decide(waiting);
}

void TrackedStage::set_connections(conntrack::Connections& connections) noexcept {
  connections_ = &connections;
  decider_.set_connections(connections);
  begin_batch();
}

void TrackedStage::process(std::span<PacketView> packets) noexcept {
  connections_->prepare(packets);
  KeyedPackets waiting;
  for (const PacketView packet : packets) {
    Verdict& verdict = packet.packet->verdict;
    const Standing standing = standing_of(packet, route_);
    if (standing != Standing::judged) {
      verdict = verdict_of(standing, verdict);
      continue;
    }
    if (tracks_between_) {
      decide_alone(packet);
      continue;
    }
    const conntrack::Tracked tracked = connections_->of(packet);
    const PacketConnection connection = PacketConnection::of(tracked);
    if (connection.full != 0) {
      verdict = Verdict::drop(DropReason::connections_full);
      continue;
    }
    waiting.packets[waiting.count] = packet;
    classify::make_key(packet, waiting.keys[waiting.count++], connection.number);
    // A connection that begins ends with its first packet, before the next one, which may belong to it.
    const bool may_begin = connections_->may_begin(tracked);
    // What it announces may come with the next packet.
    const bool needs_help = connections_->needs_help(packet, tracked, translates_);
    if (may_begin || needs_help || waiting.count == waiting.packets.size()) decide(waiting);
    if (needs_help && verdict.alive()) help(packet, tracked);
    if (may_begin && !verdict.alive()) connections_->refuse(packet);
  }
  decide(waiting);
}

void TrackedStage::decide(KeyedPackets& waiting) noexcept {
  if (waiting.count == 0) return;
  decider_.decide(waiting);
  waiting.count = 0;
}

/// Its connection is looked up after the rules that come first, and before the next packet comes to them.
void TrackedStage::decide_alone(PacketView packet) noexcept {
  KeyedPackets one;
  one.packets.front() = packet;
  classify::make_key(packet, one.keys.front());
  one.count = 1;
  decide(one);
  const std::optional<conntrack::Tracked> said = connections_->said(packet);
  if (!said) return;
  const Verdict& verdict = packet.packet->verdict;
  if (verdict.alive()) help(packet, *said);
  if (!verdict.alive() && connections_->may_begin(*said)) connections_->refuse(packet);
}

std::string_view TrackedStage::track(PacketView packet, classify::Key& key, bool untracked) noexcept {
  if (untracked) connections_->leave_untracked(packet);
  const conntrack::Tracked tracked = connections_->of(packet);
  const PacketConnection connection = PacketConnection::of(tracked);
  key.connection = connection.number;
  if (connection.full == 0) return {};
  packet.packet->verdict = Verdict::drop(DropReason::connections_full);
  return "there is no room for another connection";
}

void TrackedStage::help(PacketView packet, const conntrack::Tracked& tracked) noexcept {
  if (!connections_->needs_help(packet, tracked, translates_)) return;
  switch (connections_->help(packet, tracked)) {
    case conntrack::Helped::passes: break;
    case conntrack::Helped::incomplete: packet.packet->verdict = Verdict::drop(DropReason::ftp_incomplete); break;
    case conntrack::Helped::no_room:
    case conntrack::Helped::too_long: packet.packet->verdict = Verdict::drop(DropReason::ftp_unexpected); break;
  }
}

void TrackedStage::fill(std::span<const PacketView> packets, std::span<std::byte* const> states) noexcept {
  for (const PacketView packet : packets) {
    if (!connections_->said(packet)) parse(packet);
  }
  connections_->prepare(packets);
  for (std::size_t i = 0; i < packets.size(); ++i) write_state(look_up(packets[i]), states[i]);
}

TrackedStage::Known TrackedStage::look_up(PacketView packet) noexcept {
  if (const std::optional<conntrack::Tracked> before = connections_->said(packet)) return {*before, true};
  if (standing_of(packet, route_) != Standing::judged) return {};
  Known known{connections_->of(packet), true};
  if (!connections_->may_begin(known.tracked)) return known;
  classify::Key key;
  classify::make_key(packet, key, PacketConnection::of(known.tracked).number);
  const auto decided = classify::decision(rules_, decider_.entry_for(key), key.family);
  if (decided.action == classify::Action::accept) return known;
  connections_->refuse(packet);
  known.tracked.connection = nullptr;
  return known;
}

void TrackedStage::write_state(const Known& known, std::byte* to) const noexcept {
  PacketConnection state;
  if (known.is_tracked) state = PacketConnection::of(known.tracked);
  std::memcpy(to, &state, sizeof state);
}

/// Called right after the packet was processed alone, or when a device has decided about it.
std::string TrackedStage::explain(PacketView packet) const {
  if (std::string why = explain_without_rules(standing_of(packet, route_)); !why.empty()) return why;
  const std::optional<conntrack::Tracked> said = connections_->said(packet);
  if (!said && tracks_between_) {
    classify::Key key;
    classify::make_key(packet, key);
    return decider_.explain(key);
  }
  if (!said) return "its connection was not looked up";
  if (has_no_room(*said)) return "there is no room for another connection";
  const classify::Connection connection = connection_of(*said);
  classify::Key key;
  classify::make_key(packet, key, number_of(connection));
  return fmt::format("{}; connection: {}", decider_.explain(key), to_string(connection));
}

}  // namespace penstock::firewall
