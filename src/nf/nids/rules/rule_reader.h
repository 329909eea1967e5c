// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads Suricata's and Snort 2.9's rule files, and the files beside them.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "nf/nids/rules/rule_costs.h"
#include "nf/nids/rules/rule_set.h"

namespace penstock::nids {

/// HOME_NET, EXTERNAL_NET, HTTP_PORTS …: names without `$`, texts as suricata.yaml has them.
using Variables = std::map<std::string, std::string, std::less<>>;

/// The customary ones, of which a user sets some.
[[nodiscard]] Variables default_variables();

struct RuleFiles {
  std::vector<std::string> rules;  // paths; .gz and .zst are unpacked
  std::string classification;      // paths; empty: the built-in customary classes
  std::string reference;           // empty: built-in
  std::string threshold;           // empty: none
  Variables variables = default_variables();
  std::map<std::string, Place, std::less<>> variable_places{};  // where those were set that a user set
  std::size_t most_rules = kMostRules;
};

/// Fails only where a file cannot be read, where variables or the files beside the rules are wrong, and where rules are
/// beyond a bound (rule_costs.h). A rule that cannot
/// be loaded is in `left_out`.
[[nodiscard]] Result<RuleSet> read_rules(const RuleFiles& files);

/// The same of one text, for tests. `name` stands in places.
[[nodiscard]] Result<RuleSet> read_rules_text(std::string_view text, const std::string& name = "test.rules",
                                              const Variables& variables = default_variables(),
                                              std::size_t most_rules = kMostRules);

}  // namespace penstock::nids
