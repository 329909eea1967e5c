// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU twin of a firewall that translates addresses. Its filters decide first. Then it decides what new connections
// are translated to, and writes that to all packets of connections that are translated: destinations before the route
// is looked up, sources after that, and the other way round for replies.

#pragma once

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

  void set_connections(conntrack::Connections& connections) noexcept override;
  void process(std::span<PacketView> packets) noexcept override;
  std::string explain(PacketView packet) const override;

 private:
  [[nodiscard]] Verdict translate(PacketView packet) noexcept;

  const NatRules& nat_;
};

}  // namespace penstock::firewall
