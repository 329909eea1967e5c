// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What an engine's answer leads to: the rule that counts the packet, and its action. For host and device.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "classify/rule.h"
#include "packet/layout.h"

namespace penstock::classify {

/// What counts a packet: the rule's index, or, behind all rules, the place of a policy.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t policy_counter(std::uint32_t rule_count,
                                                                          NetworkLayer family) noexcept {
  return rule_count + (family == NetworkLayer::ipv4 ? 0 : 1);
}
/// Of a packet that neither a rule nor a policy decided about.
inline constexpr std::uint32_t kNoCounter = 0xffffffff;

/// Borrows what an engine's answer leads to, the host's or a copy of it on the device.
struct RulesView {
  const Entry* entries = nullptr;
  std::uint32_t rule_count = 0;
  Action ipv4_policy = Action::accept;
  Action ipv6_policy = Action::accept;
};

/// Of the host's.
[[nodiscard]] inline RulesView view_of(const Ruleset& rules) noexcept {
  return {rules.entries.data(), static_cast<std::uint32_t>(rules.rules.size()), action_of(rules.ipv4_policy),
          action_of(rules.ipv6_policy)};
}

struct Decision {
  std::uint32_t counter;
  Action action;
};

/// `entry`: what an engine gives, kNoEntry included.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Decision decision(const RulesView& rules, std::uint32_t entry,
                                                            NetworkLayer family) noexcept {
  if (entry != kNoEntry) return {rules.entries[entry].rule, rules.entries[entry].action};
  return {policy_counter(rules.rule_count, family),
          family == NetworkLayer::ipv4 ? rules.ipv4_policy : rules.ipv6_policy};
}

}  // namespace penstock::classify
