// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU twin: groups of packets become keys, the engine finds their rules, and the rules' targets become verdicts.
// And the finish stage, which counts what the GPU stage decided.

#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "function/network_function.h"
#include "nf/firewall/firewall.h"

namespace penstock::firewall {

class FirewallStage final : public function::CpuStage {
 public:
  /// Borrows all three.
  FirewallStage(const Ruleset& rules, const Classifier& classifier, RuleCounters& counters) noexcept
      : rules_(rules), view_(view_of(rules)), classifier_(classifier), counters_(counters) {}

  void process(std::span<PacketView> packets) noexcept override;
  std::string explain(PacketView packet) const override;

 private:
  void process_group(std::span<PacketView> packets) noexcept;

  const Ruleset& rules_;
  RulesView view_;
  const Classifier& classifier_;
  RuleCounters& counters_;
};

class FirewallFinishStage final : public function::FinishStage {
 public:
  /// Borrows the counters.
  explicit FirewallFinishStage(RuleCounters& counters) noexcept : counters_(counters) {}

  void finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept override;

 private:
  RuleCounters& counters_;
};

}  // namespace penstock::firewall
