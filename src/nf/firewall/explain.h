// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Says what a firewall makes of one packet, and why: which rule decides, and what the packet's connection is translated
// to.

#pragma once

#include <cstdint>
#include <vector>

#include "classify/classifier.h"
#include "classify/rule.h"
#include "conntrack/connections.h"
#include "function/explanation.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/judge_core.h"
#include "nf/firewall/nat_rules.h"
#include "nf/firewall/steps/step_runner.h"
#include "packet/packet.h"

namespace penstock::firewall {

/// Of one firewall; borrowed.
struct Tables {
  const classify::Ruleset& rules;
  const classify::Classifier& classifier;
  const StepContext steps;         // without a state
  const NatRules* nat = nullptr;   // if it translates
  Route route{};                   // which packets it judges
  bool has_port_blocks = false;    // sources get their ports from blocks
  const Bridge* bridge = nullptr;  // null: packets are routed
};

/// NetworkFunction::explain. `connections`: those of ConnectionKeeper::explain; null: the firewall does not track any.
[[nodiscard]] function::Explanation explain(PacketView packet, const Tables& tables,
                                            conntrack::Connections* connections);

}  // namespace penstock::firewall
