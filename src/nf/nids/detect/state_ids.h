// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The numbers by which flow and host memory refer to flowbits, flowints, xbits and rules. A rule set numbers its names
// and rules by itself (their indices), but memory outlives rule sets: in a reload, a name that stays keeps its number.
// Memory is never rewritten, so rule sets before and after a reload can use it alternately.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "nf/nids/rules/rule_set.h"

namespace penstock::nids {

struct StateIds {
  // By the index of the name in its rule set.
  std::vector<std::uint32_t> flowbits, flowints, xbits;
  // By the index of the rule; 0 for rules without a threshold or tag.
  std::vector<std::uint32_t> thresholds, tags;

  /// The lowest unused numbers. No number is used twice in a run: what memory holds for a name that is gone is never
  /// found again, and leaves with its flow or is evicted. So nothing has to be remembered of names that are gone.
  struct Unused {
    std::uint32_t flowbits = 0, flowints = 0, xbits = 0, thresholds = 0, tags = 0;
  };
  /// FlowMemory keeps 30 bits: enough for a thousand new names with each of a million reloads.
  static constexpr std::uint32_t kEnd = std::uint32_t{1} << 30;

  /// A rule set that has been used, with its numbers.
  struct Known {
    const RuleSet* rules;
    const StateIds* ids;
  };
  /// Takes over the numbers of the first of `known` that has the same name; others are new. Thresholds and tags are
  /// identified by their rule's (gid, sid). A threshold whose definition has changed is new, and begins to count anew.
  /// Fails, and changes nothing, if no numbers are left.
  [[nodiscard]] static Result<StateIds> assign(const RuleSet& rules, std::span<const Known> known, Unused& unused);
};

/// Identifies a rule over rule sets. No two rules of a set have the same.
[[nodiscard]] inline std::uint64_t rule_key(const Rule& rule) noexcept {
  return std::uint64_t{rule.gid} << 32 | rule.sid;
}

}  // namespace penstock::nids
