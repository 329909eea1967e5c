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

namespace penstock::firewall {

/// The most conditions of a rule, and of an entry, which has those of a rule and of all rules that call its chain.
inline constexpr std::size_t kMostConditions = 1024;

/// A word without its quotes and escapes; it owns its `text`. Only an unquoted word can be an option or a `!`.
struct IptablesWord {
  std::string text;
  std::uint32_t column = 0;
  bool quoted = false;
};

/// Splits a line into words, with "…" and \ quoting as in iptables-save. False if a quote is not closed.
[[nodiscard]] bool split_iptables(std::string_view line, std::vector<IptablesWord>& words);

struct IptablesRule {
  enum class Jump : std::uint8_t { none, accept, drop, reject, give_back, call, go };

  std::string chain;
  Jump jump = Jump::none;
  std::string target;  // for `call` and `go`: the chain, or an extension
  std::uint32_t target_column = 0;
  std::string unsupported;       // the unsupported construct because of which the rule is left out; empty if there is
                                 // none
  std::string unsupported_word;  // the word that has it
  std::uint32_t unsupported_column = 0;
  Errors unknown_interfaces;  // reported only if the rule is reachable (lo in FORWARD never is, for example)
  std::uint32_t line = 0;
  std::uint32_t index = 0;  // in Ruleset::rules
  /// The rule matches if all conditions of one of these hold.
  std::vector<std::vector<classify::Condition>> alternatives;
};

/// Reads the words of a rule from `-A` on. The ranges of its conditions are added to `rules`. Errors are added to
/// `errors`, with the file and line of `place`.
[[nodiscard]] IptablesRule read_iptables_rule(const std::vector<IptablesWord>& words, NetworkLayer family,
                                              const classify::Interfaces& interfaces, const Place& place,
                                              classify::Ruleset& rules, Errors& errors);

}  // namespace penstock::firewall
