// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The chains of a table of iptables-save: what their jumps may name.

#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "nf/firewall/filter_chains.h"

namespace penstock::firewall {

struct IptablesTable {
  NetworkLayer family = NetworkLayer::ipv4;
  std::string name;
  std::uint32_t line = 0;
  FilterChains chains;  // the built-in chains are the base chains
};

/// Errors for jumps to a name that is neither a chain of the table nor a target of iptables, and for jumps to a
/// built-in chain. In the order of the file.
[[nodiscard]] Errors check_jumps(const IptablesTable& table, const std::string& file);

/// Errors for the rules of `chain` that jump, goto or return: the last match can only decide among rules that are all
/// evaluated.
[[nodiscard]] Errors check_flat(const IptablesTable& table, const std::string& chain, const std::string& file);

/// Marks the rules that leave packets untracked, for a table that packets pass when theirs are looked up.
void mark_rules_too_late(IptablesTable& table);
/// Marks the rules that test connections, for a table that packets pass before theirs are looked up.
void mark_rules_about_connections(IptablesTable& table);

/// Marks all rules, for a table that packets pass before they are translated, where they are translated first.
void mark_rules_before_translation(IptablesTable& table);

/// Whether connections must not be looked up before these rules, which `chain` reaches: they can drop packets, or leave
/// them untracked.
[[nodiscard]] bool needs_early_rules(const IptablesTable& table, const std::string& chain);

/// Marks the rules that have no target or an unsupported one, once all chains are known.
void mark_unsupported_targets(IptablesTable& table);

}  // namespace penstock::firewall
