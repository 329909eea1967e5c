// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads Suricata and Snort 2.9 rule files, and the configuration files that belong to them.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "nf/nids/rules/rule_costs.h"
#include "nf/nids/rules/rule_set.h"

namespace penstock::nids {

/// HOME_NET, EXTERNAL_NET, HTTP_PORTS …: names without `$`, values in the syntax of suricata.yaml.
using Variables = std::map<std::string, std::string, std::less<>>;

/// Suricata's customary variables, with default values; a user overrides some of them.
[[nodiscard]] Variables default_variables();

struct RuleFiles {
  std::vector<std::string> rules;  // paths; .gz and .zst files are decompressed
  std::string classification;      // path; empty: the built-in classes
  std::string reference;           // path; empty: the built-in ones
  std::string threshold;           // path; empty: none
  Variables variables = default_variables();
  std::map<std::string, Place, std::less<>> variable_places{};  // where the user's variables were set
  std::size_t most_rules = kMostRules;
};

/// Fails only if a file cannot be read, if variables or the other configuration files are wrong, or if the rules exceed
/// a bound (rule_costs.h). Rules that cannot be loaded are listed in `left_out`.
[[nodiscard]] Result<RuleSet> read_rules(const RuleFiles& files);

/// The same for one text, for tests. `name` is the file name in places.
[[nodiscard]] Result<RuleSet> read_rules_text(std::string_view text, const std::string& name = "test.rules",
                                              const Variables& variables = default_variables(),
                                              std::size_t most_rules = kMostRules);

}  // namespace penstock::nids
