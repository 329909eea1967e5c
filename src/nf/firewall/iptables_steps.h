// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Match extensions and targets of iptables that become steps (classify/step.h): limits, marks, lists, logs and the
// like, with their options (iptables-extensions(8)).

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "classify/interval.h"
#include "classify/rule.h"
#include "classify/step.h"
#include "nf/firewall/host_addresses.h"
#include "nf/firewall/ipset_reader.h"
#include "nf/firewall/iptables_word.h"
#include "packet/layout.h"

namespace penstock::firewall {

/// The words of a rule, and the next one.
struct IptablesWords {
  const std::vector<IptablesWord>& words;
  std::size_t& at;
};

struct IptablesStepContext {
  NetworkLayer family;
  classify::Ruleset& rules;  // gets objects, and the ranges of conditions
  const std::string& text;   // of the rule: names its limits and the like, whose state it keeps over reloads
  const HostAddresses& host;
  const Ipsets* ipsets;                                      // null: no file of them
  const std::set<std::string, std::less<>>& changed_ipsets;  // by rules of the file
  std::size_t& set_values_left;  // of sets, for this rule and those after it: each has a copy
};

/// What became of an extension.
struct IptablesSteps {
  std::vector<classify::Step> steps;
  bool ordered = false;        // its result depends on the packets that reach it
  std::string unsupported{};   // why the rule is left out; empty: it is supported
  bool only_observes = false;  // no packet passes because the rule is left out
  /// A mistake, at a word of the rule; null: none.
  const IptablesWord* mistaken = nullptr;
  std::string message{}, expected{};
};

/// The connections in the states of a list such as "NEW,ESTABLISHED", as bits of Subject::connection; SNAT and DNAT
/// stand for those that are translated.
[[nodiscard]] std::optional<std::uint64_t> parse_connection_states(std::string_view list);
/// The connections that a match requires by their states and their direction, of which one is given. As in the kernel,
/// packets without a connection match any direction if the match also names their state.
[[nodiscard]] std::uint64_t connections_of(std::optional<std::uint64_t> states, std::optional<bool> reply);

/// Whether there is such an extension here.
[[nodiscard]] bool is_step_match(std::string_view name) noexcept;
[[nodiscard]] bool is_step_target(std::string_view name) noexcept;

/// Reads the options of `-m name`, or of `-j name`, which is the word before the next one.
[[nodiscard]] IptablesSteps read_step_match(std::string_view name, IptablesWords words,
                                            const IptablesStepContext& context);
[[nodiscard]] IptablesSteps read_step_target(std::string_view name, IptablesWords words,
                                             const IptablesStepContext& context);

}  // namespace penstock::firewall
