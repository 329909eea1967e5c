// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/translating_stage.h"

#include <fmt/format.h>

#include <cstring>

#include "base/ip_address.h"
#include "conntrack/nat.h"
#include "conntrack/nat_core.h"
#include "nf/firewall/judge_core.h"
#include "nf/firewall/translating_core.h"

namespace penstock::firewall {

void TranslatingStage::set_emitter(function::Emitter& emitter) noexcept {
  if (nat_steps_ != nullptr) nat_steps_->set_emitter(emitter);
  TrackedStage::set_emitter(emitter);
}

void TranslatingStage::set_connections(conntrack::Connections& connections) noexcept {
  if (nat_steps_ != nullptr) nat_steps_->set_connections(connections);
  TrackedStage::set_connections(connections);
  connections.will_write(nat_.kind());
}

void TranslatingStage::begin_batch() noexcept {
  TrackedStage::begin_batch();
  if (nat_steps_ != nullptr) nat_steps_->begin_batch();
}

void TranslatingStage::process(std::span<PacketView> packets) noexcept {
  if (translates_before_filters(nat_.hook)) return translate_and_filter(packets);
  TrackedStage::process(packets);
  if (translates_between()) return;
  for (const PacketView packet : packets) {
    Verdict& verdict = packet.packet->verdict;
    if (verdict.alive() && standing_of(packet, route_) == Standing::judged) verdict = translated(packet);
  }
}

/// One packet after the other: a connection that the filters refuse ends before the next one is looked up.
void TranslatingStage::translate_and_filter(std::span<PacketView> packets) noexcept {
  connections().prepare(packets);
  for (PacketView& packet : packets) {
    Verdict& verdict = packet.packet->verdict;
    if (standing_of(packet, route_) == Standing::judged) {
      const conntrack::Tracked tracked = connections().of(packet);
      if (!has_no_room(tracked)) verdict = translated(packet);
      if (!verdict.alive()) {
        if (connections().may_begin(tracked)) connections().refuse(packet);
        continue;
      }
    }
    TrackedStage::process({&packet, 1});
  }
}

bool TranslatingStage::is_undecided(const conntrack::Connection& connection) const noexcept {
  return (connection.status & (conntrack::done_bit(nat_.kind()) | conntrack::Connection::kConfirmed)) == 0;
}

std::string_view TranslatingStage::translate(PacketView packet, classify::Key& key) noexcept {
  Verdict& verdict = packet.packet->verdict;
  if (const auto said = connections().said(packet)) help(packet, *said);
  if (!verdict.alive()) return "what it announces cannot be expected";
  verdict = translated(packet);
  if (!verdict.alive()) return "it cannot be translated";
  classify::make_key(packet, key, number_of(connection_of(connections().of(packet))));
  return {};
}

Verdict TranslatingStage::translated(PacketView packet) noexcept {
  const Verdict so_far = packet.packet->verdict;
  const conntrack::Tracked tracked = connections().of(packet);
  // It must not leave as it came.
  if (tracked.lost) return Verdict::drop(DropReason::untranslated);
  if (tracked.connection == nullptr) return so_far;
  if (is_undecided(*tracked.connection)) {
    // A packet that came together with this one has ended the connection.
    if (!connections().may_begin(tracked)) return Verdict::drop(DropReason::untranslated);
    if (tracked.may_be_first()) {
      const auto range = nat_.range_for(packet, number_of(connection_of(tracked)), nat_steps_.get());
      if (!range) return Verdict::drop(range.error());
      if (!connections().translate(tracked, nat_.kind(), *range)) return Verdict::drop(DropReason::untranslated);
    }
  }
  return conntrack::rewrite(packet, conntrack::rewrite_for(tracked, conntrack::side_of(nat_.kind())))
             ? so_far
             : Verdict::drop(DropReason::untranslated);
}

/// About a packet that a device will translate.
void TranslatingStage::write_state(const Known& known, std::byte* to) const noexcept {
  TranslatingState state;
  if (known.is_tracked) {
    const conntrack::Tracked& tracked = known.tracked;
    const bool is_undecided =
        tracked.connection != nullptr && (connections().may_begin(tracked) || this->is_undecided(*tracked.connection));
    const conntrack::Rewrite rewrite = conntrack::rewrite_for(tracked, conntrack::side_of(nat_.kind()));
    state.connection = number_of(connection_of(tracked));
    state.full = has_no_room(tracked);
    state.is_left_to_host = is_undecided || tracked.lost || (rewrite.needed() && rewrite.is_error);
    if (rewrite.needed() && !state.is_left_to_host) {
      const bool source = rewrite.sides == conntrack::Rewrite::kSource;
      state.address = source ? rewrite.source : rewrite.destination;
      state.port = source ? rewrite.source_port : rewrite.destination_port;
      state.sides = rewrite.sides;
    }
  }
  std::memcpy(to, &state, sizeof state);
}

std::string TranslatingStage::explain(PacketView packet) const {
  std::string why = TrackedStage::explain(packet);
  const auto said = connections().said(packet);
  if (!said || said->connection == nullptr || !said->connection->translated()) return why;
  const auto text = [](const conntrack::Tuple& tuple) {
    const auto end = [&](const Ipv6Address& address, std::uint16_t port) {
      return tuple.ip_version == 4
                 ? fmt::format("{}:{}", to_string(Ipv4Address{static_cast<std::uint32_t>(address.low)}), port)
                 : fmt::format("[{}]:{}", to_string(address), port);
    };
    return fmt::format("{} to {}", end(tuple.source, tuple.source_port),
                       end(tuple.destination, tuple.destination_port));
  };
  return fmt::format("{}; its connection from {} goes on from {}", why, text(said->connection->original),
                     text(*conntrack::inverse_of(said->connection->reply)));
}

}  // namespace penstock::firewall
