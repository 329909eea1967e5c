// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU twin of a firewall that translates addresses. Its filters decide first. Then it decides what new connections
// are translated to, and writes that to all packets of connections that are translated: destinations before the route
// is looked up, sources after that, and the other way round for replies. In a chain on a device, it only gets packets
// of connections that are not confirmed yet, and ICMP errors about translated ones; the device writes to the others.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nf/firewall/nat_rules.h"
#include "nf/firewall/tracked_stage.h"

namespace penstock::firewall {

class TranslatingStage final : public TrackedStage {
 public:
  /// Borrows all arguments.
  TranslatingStage(const classify::Ruleset& rules, const classify::Classifier& classifier, RuleCounters& counters,
                   const std::vector<bool>& answering, ConnectionCounters& of_connections, const NatRules& nat)
      : TrackedStage(rules, classifier, counters, answering, of_connections), nat_(nat) {}

  void process(std::span<PacketView> packets) noexcept override;
  std::string explain(PacketView packet) const override;

 protected:
  void write_state(const Known& known, std::byte* to) const noexcept override;

 private:
  /// The end that is written at this hook: Rewrite::kSource or kDestination.
  [[nodiscard]] std::uint8_t side() const noexcept;
  /// Whether the connection of a packet, which has one, has no translation at this hook yet.
  [[nodiscard]] bool is_undecided(const conntrack::Connection& connection) const noexcept;
  [[nodiscard]] Verdict translate(PacketView packet) noexcept;

  const NatRules& nat_;
};

}  // namespace penstock::firewall
