// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU twin: groups of packets become keys, the engine finds their rules, and the rules' targets become verdicts.

#pragma once

#include <span>
#include <string>

#include "chain/network_function.h"
#include "nf/firewall/firewall.h"

namespace penstock::firewall {

class FirewallStage final : public chain::CpuStage {
 public:
  /// Borrows all three.
  FirewallStage(const Ruleset& rules, const Classifier& classifier, RuleCounters& counters) noexcept
      : rules_(rules), classifier_(classifier), counters_(counters) {}

  void process(std::span<PacketView> packets) noexcept override;
  std::string explain(PacketView packet) const override;

 private:
  void process_group(std::span<PacketView> packets) noexcept;
  void decide(PacketView packet, NetworkLayer family, std::uint32_t entry) noexcept;

  const Ruleset& rules_;
  const Classifier& classifier_;
  RuleCounters& counters_;
};

}  // namespace penstock::firewall
