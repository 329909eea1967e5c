// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What became of a rule set's rules, for people: how many were loaded, and how many were not for which reason.

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
    Error first;  // of them, by the files' order
  };
  std::size_t loaded = 0;
  std::size_t disabled = 0;   // in comments
  std::vector<Row> left_out;  // the most frequent reason first
};

[[nodiscard]] LoadTable load_table(const RuleSet& set);
/// "1,969 rules loaded, 12 left out, 3 disabled", and a line for each reason.
[[nodiscard]] std::string to_string(const LoadTable& table);

}  // namespace penstock::nids
