// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU twin: makes keys of groups of packets, lets the engine find their rules, and turns the rules' targets into
// verdicts. Also the finish stage, which counts what the GPU stage decided.

#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "function/network_function.h"
#include "gpu/stage.h"
#include "nf/firewall/firewall.h"

namespace penstock::firewall {

class FirewallStage final : public function::CpuStage {
 public:
  /// Borrows all arguments.
  FirewallStage(const classify::Ruleset& rules, const classify::Classifier& classifier, RuleCounters& counters) noexcept
      : rules_(rules), view_(classify::view_of(rules)), classifier_(classifier), counters_(counters) {}

  void process(std::span<PacketView> packets) noexcept override;
  std::string explain(PacketView packet) const override;

 private:
  void process_group(std::span<PacketView> packets) noexcept;

  const classify::Ruleset& rules_;
  classify::RulesView view_;
  const classify::Classifier& classifier_;
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

/// Borrows the tables, which must be on the current device.
[[nodiscard]] std::unique_ptr<gpu::GpuStage> make_firewall_gpu_stage(const classify::DeviceTables& tables);

}  // namespace penstock::firewall
