// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The chains of a filter table, and how they compile into entries. A call is replaced by the rules of the called chain,
// each with the caller's conditions added; RETURN skips the rest of them. So a chain called from several places
// multiplies the entries, and their number is bounded.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "classify/rule.h"
#include "nf/firewall/iptables_rule.h"

namespace penstock::firewall {

struct IptablesChain {
  std::optional<classify::Target> policy;  // only built-in chains have one
  std::vector<IptablesRule> rules;
};

struct IptablesTable {
  NetworkLayer family = NetworkLayer::ipv4;
  std::uint32_t line = 0;
  std::map<std::string, IptablesChain> chains;
};

/// Errors for jumps to a name that is neither a chain of the table nor a target of iptables, and for jumps to a
/// built-in chain. In the order of the file.
[[nodiscard]] Errors check_jumps(const IptablesTable& table, const std::string& file);

/// Errors for the rules of `chain` that jump, goto or return: the last match can only decide among rules that are all
/// evaluated.
[[nodiscard]] Errors check_flat(const IptablesTable& table, const std::string& chain, const std::string& file);

/// The most conditions of all entries together, per rule that is allowed.
inline constexpr std::size_t kMostConditionsPerRule = 8;

/// Appends the entries of `table`, starting at `chain`, to the rules of `read`, and reports reachable rules that are
/// left out. Follows at most `most_rules` rules; a rule counts once for each call of its chain. The jumps must have
/// been checked.
[[nodiscard]] Errors write_out(const IptablesTable& table, const std::string& chain, std::size_t most_rules,
                               Read<classify::Ruleset>& read);

}  // namespace penstock::firewall
