// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the statements of a rule: {"expr": [{"match": …}, {"accept": null}]}.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "classify/interfaces.h"
#include "classify/rule.h"
#include "classify/step.h"
#include "nf/firewall/filter_chains.h"
#include "nf/firewall/nftables/sets.h"
#include "nf/firewall/rule_reader.h"

namespace penstock::firewall::nftables {

struct Rule {
  /// What the rule does: one part, or, with a verdict map, one for each of its verdicts. No packet meets the conditions
  /// of two parts. Targets are names of chains in the rule's table. Indices, lines and places are the caller's.
  std::vector<ChainRule> parts;
  std::string_view ignored{};  // a statement beside the verdict that does nothing here: "log"; empty: none
  bool can_drop = false;  // or change a packet: it matters even where packets only pass through before or after rules
  bool marks = false;     // packets or connections: it matters there if other rules test marks
  bool tests_marks = false;
  std::set<std::string, std::less<>> unknown_interfaces;
  std::vector<std::string> sets_used,
      sets_updated;  // names of named sets and maps; updated: while packets are processed
};

/// The most elements that a set which changes may have.
inline constexpr std::uint32_t kMostChangingElements = 1U << 22;

/// What rules refer to. References must stay valid.
struct RuleContext {
  const classify::Interfaces& interfaces;
  /// The named set or map of the rule's table; a problem if there is none, or if it is not supported.
  std::function<Checked<const Set*>(const std::string& name)> find_set;
  classify::Ruleset& rules;  // gets the ranges of conditions, and the names of interfaces
  Budget& budget;
  bool translates = false;  // the rule is of a chain that translates addresses
  /// The named limit or quota of the rule's table, as index in StepObjects; a problem if there is none.
  std::function<Checked<std::uint32_t>(const std::string&name)> find_rate, find_quota;
  /// The elements of the rule's table's named set of this type, of those types that only steps know; null: there is
  /// none.
  std::function<const Json*(const std::string& name, std::string_view type)> find_elements;
  /// The type of the named helper of the rule's table; empty if there is none.
  std::function<std::string(const std::string& name)> find_helper;
  const std::string& name;  // of the rule, for its own limits and the like, whose state it keeps over reloads
  const HostAddresses& host;
  bool logs = false;                 // as ReadOptions
  std::optional<Hook> bridged_at{};  // rules are about bridged frames, at this hook
  bool at_output = false;            // the chains of hook output apply
};

/// Unsupported constructs are in the parts, mistakes are returned.
[[nodiscard]] Checked<Rule> read_rule(const Json& statements, const RuleContext& context);

}  // namespace penstock::firewall::nftables
