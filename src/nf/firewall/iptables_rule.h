// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Parses an `-A` line of an iptables-save file: its words, and their meaning.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text_file.h"
#include "classify/interfaces.h"
#include "classify/rule.h"
#include "nf/firewall/filter_chains.h"
#include "nf/firewall/host_addresses.h"
#include "nf/firewall/ipset_reader.h"
#include "nf/firewall/iptables_word.h"

namespace penstock::firewall {

/// Splits a line into words, with "…" and \ quoting as in iptables-save. False if a quote is not closed.
[[nodiscard]] bool split_iptables(std::string_view line, std::vector<IptablesWord>& words);

/// A rule and the name of its chain.
struct IptablesRule : ChainRule {
  std::string chain;
};

/// Where a rule stands.
struct IptablesRuleContext {
  NetworkLayer family;
  bool translates;  // it is of the table nat
  const classify::Interfaces& interfaces;
  const HostAddresses& host;
  const Ipsets* ipsets;                                      // null: no file of them
  const std::set<std::string, std::less<>>& changed_ipsets;  // by rules of the file
  std::size_t& set_values_left;                              // as in IptablesStepContext
  bool logs;                                                 // as ReadOptions
  bool at_output;                                            // the chains of hook output apply
  const std::string& text;                                   // of the rule, as users see it
  const Place& place;
};

/// Reads the words of a rule from `-A` on. The ranges of its conditions, and what its steps refer to, are added to
/// `rules`. Errors are added to `errors`, with the file and line of the place.
[[nodiscard]] IptablesRule read_iptables_rule(const std::vector<IptablesWord>& words,
                                              const IptablesRuleContext& context, classify::Ruleset& rules,
                                              Errors& errors);

}  // namespace penstock::firewall
