// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes a rule as `nft list ruleset` does, for people.

#pragma once

#include <string>

#include "nf/firewall/nftables/document.h"

namespace penstock::firewall::nftables {

/// The statements of a rule, and its comment: `tcp dport 22 accept comment "ssh"`. The counts of counters are left out,
/// and so are the last elements of large sets. What is not known is written as JSON.
[[nodiscard]] std::string rule_text(const Json& rule);

/// An expression, a value or another part of a statement, in quotes: `'fib daddr . iif oif'`.
[[nodiscard]] std::string in_words(const Json& expression);

}  // namespace penstock::firewall::nftables
