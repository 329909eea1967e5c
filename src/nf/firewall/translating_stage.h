// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU twin of a firewall that translates addresses. Its filters decide first, except at output, where they see what
// is translated, as in Linux. Then it decides what new connections
// are translated to, and writes that to all packets of connections that are translated: destinations before the route
// is looked up, sources after that, and the other way round for replies. In a chain on a device, it only gets packets
// of connections that are not confirmed yet, and ICMP errors about translated ones; the device writes to the others.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nf/firewall/nat_rules.h"
#include "nf/firewall/tracked_stage.h"

namespace penstock::firewall {

class TranslatingStage final : public TrackedStage {
 public:
  /// Borrows all arguments. `nat_steps`: as `steps`, for the rules that translate.
  TranslatingStage(const classify::Ruleset& rules, const classify::Classifier& classifier, RuleCounters& counters,
                   const Answering& answering, const StepContext* steps, function::ConnectionCounters& of_connections,
                   const NatRules& nat, const StepContext* nat_steps, Route route = {})
      : TrackedStage(rules, classifier, counters, answering, steps, of_connections, true, route),
        nat_(nat),
        nat_steps_(nat_steps == nullptr
                       ? nullptr
                       : std::make_unique<StepRunner>(nat.rules, *nat.classifier, nullptr, *nat_steps)) {}

  void set_emitter(function::Emitter& emitter) noexcept override;
  void set_connections(conntrack::Connections& connections) noexcept override;
  void begin_batch() noexcept override;
  void process(std::span<PacketView> packets) noexcept override;
  std::string explain(PacketView packet) const override;

 protected:
  std::string_view translate(PacketView packet, classify::Key& key) noexcept override;
  void write_state(const Known& known, std::byte* to) const noexcept override;

 private:
  /// Whether the connection of a packet, which has one, has no translation at this hook yet.
  [[nodiscard]] bool is_undecided(const conntrack::Connection& connection) const noexcept;
  [[nodiscard]] Verdict translated(PacketView packet) noexcept;
  void translate_and_filter(std::span<PacketView> packets) noexcept;

  const NatRules& nat_;
  const std::unique_ptr<StepRunner> nat_steps_;  // null: the rules have none
};

}  // namespace penstock::firewall
