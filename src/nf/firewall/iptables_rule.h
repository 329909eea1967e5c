// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Parses an `-A` line of an iptables-save file: its words, and their meaning.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text_file.h"
#include "classify/interfaces.h"
#include "classify/rule.h"
#include "nf/firewall/filter_chains.h"

namespace penstock::firewall {

/// A word without its quotes and escapes; it owns its `text`. Only an unquoted word can be an option or a `!`.
struct IptablesWord {
  std::string text;
  std::uint32_t column = 0;
  bool quoted = false;
};

/// Splits a line into words, with "…" and \ quoting as in iptables-save. False if a quote is not closed.
[[nodiscard]] bool split_iptables(std::string_view line, std::vector<IptablesWord>& words);

/// A rule and the name of its chain.
struct IptablesRule : ChainRule {
  std::string chain;
};

/// Reads the words of a rule from `-A` on. The ranges of its conditions are added to `rules`. Errors are added to
/// `errors`, with the file and line of `place`. `translates`: the rule is of the table nat.
[[nodiscard]] IptablesRule read_iptables_rule(const std::vector<IptablesWord>& words, NetworkLayer family,
                                              bool translates, const classify::Interfaces& interfaces,
                                              const Place& place, classify::Ruleset& rules, Errors& errors);

}  // namespace penstock::firewall
