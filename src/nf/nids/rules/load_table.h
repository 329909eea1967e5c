// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A summary of how a rule set was loaded: how many rules were loaded, and how many were left out for each reason.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "nf/nids/rules/rule_set.h"

namespace penstock::nids {

struct LoadTable {
  struct Row {
    std::string reason;
    std::size_t rules = 0;
    Error first;  // the first such rule, in file order
  };
  std::size_t loaded = 0;
  std::size_t disabled = 0;   // commented out
  std::vector<Row> left_out;  // most frequent reason first
};

[[nodiscard]] LoadTable load_table(const RuleSet& set);
/// "1,969 rules loaded, 12 left out, 3 disabled", then one line for each reason.
[[nodiscard]] std::string to_string(const LoadTable& table);

}  // namespace penstock::nids
