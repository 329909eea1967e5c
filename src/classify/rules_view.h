// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Translates an engine's result into the rule that counts the packet, and its action. For host and device.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "classify/rule.h"
#include "packet/layout.h"

namespace penstock::classify {

/// The index of the counter: a rule's index, or, after all rules, that of a policy.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t policy_counter(std::uint32_t rule_count,
                                                                          NetworkLayer family) noexcept {
  return rule_count + (family == NetworkLayer::ipv4 ? 0 : 1);
}
/// The counter of packets that neither a rule nor a policy decided.
inline constexpr std::uint32_t kNoCounter = 0xffffffff;

/// Borrows what is needed to interpret an engine's result, on the host or as a copy on the device.
struct RulesView {
  const Entry* entries = nullptr;
  std::uint32_t rule_count = 0;
  Action ipv4_policy = Action::accept;
  Action ipv6_policy = Action::accept;
};

/// A view of the host's rules.
[[nodiscard]] inline RulesView view_of(const Ruleset& rules) noexcept {
  return {rules.entries.data(), static_cast<std::uint32_t>(rules.rules.size()), action_of(rules.ipv4_policy),
          action_of(rules.ipv6_policy)};
}

struct Decision {
  std::uint32_t counter;
  Action action;
};

/// `entry`: the result of an engine, which may be kNoEntry.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Decision decision(const RulesView& rules, std::uint32_t entry,
                                                            NetworkLayer family) noexcept {
  if (entry != kNoEntry) return {rules.entries[entry].rule, rules.entries[entry].action};
  return {policy_counter(rules.rule_count, family),
          family == NetworkLayer::ipv4 ? rules.ipv4_policy : rules.ipv6_policy};
}

}  // namespace penstock::classify
