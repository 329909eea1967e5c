// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The chains of a filter table, and how they become entries: a call is replaced by the rules of the chain, each under
// the caller's conditions too; RETURN skips what is left of them. So chains that are called from several places become
// several times as many entries, which is why their number is bounded.

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
  std::optional<classify::Target> policy;  // of a built-in chain
  std::vector<IptablesRule> rules;
};

struct IptablesTable {
  NetworkLayer family = NetworkLayer::ipv4;
  std::uint32_t line = 0;
  std::map<std::string, IptablesChain> chains;
};

/// Rules whose jump leads nowhere: to what is neither a chain of the table nor a target of iptables, or to a built-in
/// chain. In the order of the file.
[[nodiscard]] Errors check_jumps(const IptablesTable& table, const std::string& file);

/// Most conditions of all entries together, for each of the rules that there may be.
inline constexpr std::size_t kMostConditionsPerRule = 8;

/// Appends the entries of `table`, from `chain` on, to the rules of `read`, with what is left out on this way.
/// At most `most_rules` rules are walked through, counting one each time that its chain is called. The jumps have been
/// checked.
[[nodiscard]] Errors write_out(const IptablesTable& table, const std::string& chain, std::size_t most_rules,
                               Read<classify::Ruleset>& read);

}  // namespace penstock::firewall
