// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Why the rules before the deciding one did not match a packet.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "classify/key.h"
#include "classify/rule.h"
#include "function/explanation.h"

namespace penstock::classify {

/// Adds the rules that are evaluated before `entry`, the result of an engine, which may be kNoEntry: all of them then.
/// For each rule, says which condition fails, of the entry that comes closest to a match. If there are more than can be
/// listed, those with the fewest failing conditions are. `name_of` gives a rule's name, such as `describe`. `failed`:
/// entries with a step that does not hold. Returns whether one of these rules matches and ends its chain, by `accept`
/// if other chains follow, or by `return`.
bool add_passed_over(const Ruleset& rules, const Key& key, std::uint32_t entry,
                     const std::function<std::string(const Ruleset&, std::uint32_t)>& name_of,
                     function::Explanation& to, const std::vector<std::uint32_t>& failed = {});

/// "rule 3 (line 12): -A FORWARD …"; without the line if the rule has none.
[[nodiscard]] std::string describe(const Ruleset& rules, std::uint32_t rule);

}  // namespace penstock::classify
