// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// One `-A` line of an iptables-save file: its words, and what they say.

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

/// Most conditions of a rule, and of an entry: those of a rule with those of all rules that call its chain.
inline constexpr std::size_t kMostConditions = 1024;

/// A word with its quotes and escapes resolved; `text` is its own. Only an unquoted word can be an option or a `!`.
struct IptablesWord {
  std::string text;
  std::uint32_t column = 0;
  bool quoted = false;
};

/// The words of a line, where "…" and \ quote as iptables-save quotes. False where a quote is not closed.
[[nodiscard]] bool split_iptables(std::string_view line, std::vector<IptablesWord>& words);

struct IptablesRule {
  enum class Jump : std::uint8_t { none, accept, drop, reject, give_back, call, go };

  std::string chain;
  Jump jump = Jump::none;
  std::string target;  // of `call` and `go`: the chain, or an extension
  std::uint32_t target_column = 0;
  std::string unsupported;       // the construct for which the rule is left out, or empty
  std::string unsupported_word;  // where it stands
  std::uint32_t unsupported_column = 0;
  Errors unknown_interfaces;  // mistakes only where the rule can be reached: nobody asks for lo in FORWARD
  std::uint32_t line = 0;
  std::uint32_t index = 0;  // in Ruleset::rules
  /// The rule holds where all conditions of one of these do.
  std::vector<std::vector<classify::Condition>> alternatives;
};

/// Reads the words of a rule from `-A` on. `rules` takes the ranges of its conditions. Mistakes go to `errors`, which
/// have the place's file and line.
[[nodiscard]] IptablesRule read_iptables_rule(const std::vector<IptablesWord>& words, NetworkLayer family,
                                              const classify::Interfaces& interfaces, const Place& place,
                                              classify::Ruleset& rules, Errors& errors);

}  // namespace penstock::firewall
