// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/translating_stage.h"

#include <fmt/format.h>

#include "base/ip_address.h"
#include "conntrack/nat.h"
#include "conntrack/nat_core.h"
#include "nf/firewall/judge_core.h"

namespace penstock::firewall {

void TranslatingStage::process(std::span<PacketView> packets) noexcept {
  TrackedStage::process(packets);
  for (const PacketView packet : packets) {
    Verdict& verdict = packet.packet->verdict;
    if (verdict.alive() && standing_of(packet.layout()) == Standing::judged) verdict = translate(packet);
  }
}

Verdict TranslatingStage::translate(PacketView packet) noexcept {
  using conntrack::Connection;
  using conntrack::Rewrite;
  const Verdict so_far = packet.packet->verdict;
  const conntrack::NatKind kind = nat_.kind();
  const bool source = kind == conntrack::NatKind::source;
  const conntrack::Tracked tracked = connections().of(packet);
  // It must not leave as it came.
  if (tracked.lost) return Verdict::drop(DropReason::untranslated);
  if (tracked.connection == nullptr) return so_far;
  const std::uint16_t done = source ? Connection::kSourceNatDone : Connection::kDestinationNatDone;
  if (tracked.state == conntrack::State::new_connection && connections().may_begin(tracked) &&
      (tracked.connection->status & done) == 0) {
    const auto range = nat_.range_for(packet, number_of(connection_of(tracked)));
    if (!range) return Verdict::drop(range.error());
    if (!connections().translate(tracked, kind, *range)) return Verdict::drop(DropReason::untranslated);
  }
  const auto rewrite = conntrack::rewrite_for(tracked, source ? Rewrite::kSource : Rewrite::kDestination);
  return conntrack::rewrite(packet, rewrite) ? so_far : Verdict::drop(DropReason::untranslated);
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
