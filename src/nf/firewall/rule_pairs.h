// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds the rules that two versions of a rule file have in common, for the counters that continue in a reload.

#pragma once

#include <cstdint>
#include <vector>

#include "classify/rule.h"

namespace penstock::firewall {

inline constexpr std::uint32_t kNoRule = ~std::uint32_t{0};

/// For each rule of `now` the index of the same rule in `before`, or kNoRule. Rules are the same if the user sees the
/// same rule: its text (without a handle of nft), target and address family are equal. Of several such rules, the first
/// is paired with the first, and so on. Each rule is in at most one pair, and pairs do not depend on the direction.
[[nodiscard]] std::vector<std::uint32_t> pair_rules(const classify::Ruleset& before, const classify::Ruleset& now);

/// Whether both decide the same for all packets because they compile to the same entries.
[[nodiscard]] bool same_meaning(const classify::Ruleset& before, const classify::Ruleset& now);

}  // namespace penstock::firewall
