// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A conjunction of conditions on fields, each a set of values, and how it becomes conditions of the classifier.

#pragma once

#include <vector>

#include "classify/rule.h"
#include "nf/firewall/filter_chains.h"
#include "nf/firewall/nftables/keys.h"
#include "nf/firewall/nftables/sets.h"

namespace penstock::firewall::nftables {

class Clause {
 public:
  /// Adds the condition that the field is one of `values`, and that it exists. False if no packet is left.
  [[nodiscard]] bool narrow(Field field, const classify::IntervalSet& values);
  /// The same, and what the key implies.
  [[nodiscard]] bool narrow(const Key& key, const classify::IntervalSet& values);

  /// Appends the alternatives that stand for this clause. `rules` gets their ranges.
  [[nodiscard]] Checked<void> write(classify::Ruleset& rules, Budget& budget, std::vector<Alternative>& to) const;

 private:
  [[nodiscard]] const classify::IntervalSet* values(Field field) const;

  std::vector<Condition> conditions_;  // each field at most once
  bool of_any_protocol_ = false;       // ports of whichever protocol
};

}  // namespace penstock::firewall::nftables
