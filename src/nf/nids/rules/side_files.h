// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The configuration files that belong to rules: classification.config, reference.config, threshold.config.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "nf/nids/rules/rule_set.h"
#include "nf/nids/rules/variables.h"

namespace penstock::nids {

struct RuleClass {
  std::string description;
  std::uint8_t priority = 3;
};

/// By lower-case name: Suricata ignores case here.
using ClassTable = std::unordered_map<std::string, RuleClass>;
[[nodiscard]] const ClassTable& default_classes();
/// `config classification: attempted-dos,Attempted Denial of Service,2`
[[nodiscard]] Result<ClassTable> read_classification(std::string_view text, const std::string& name);

/// `config reference: cve http://cve.mitre.org/cgi-bin/cvename.cgi?name=`; names in lower case.
using ReferenceTable = std::map<std::string, std::string, std::less<>>;
[[nodiscard]] const ReferenceTable& default_references();
[[nodiscard]] Result<ReferenceTable> read_references(std::string_view text, const std::string& name);

/// One line of threshold.config, or of a Snort rule file: `threshold`, `event_filter`, `rate_filter` or `suppress`.
struct ThresholdLine {
  std::uint32_t gid = 1;  // 0: all
  std::uint32_t sid = 0;  // 0: all of the gid
  std::optional<Threshold> threshold;
  std::optional<Suppression> suppression;
};
[[nodiscard]] bool is_threshold_line(std::string_view text) noexcept;
[[nodiscard]] std::optional<ThresholdLine> read_threshold_line(std::string_view text, VariableResolver& variables,
                                                               Complaint& why);
[[nodiscard]] Result<std::vector<ThresholdLine>> read_thresholds(std::string_view text, const std::string& name,
                                                                 VariableResolver& variables);
/// Applies the lines to each rule, with Suricata's precedence (rule_state.h, Threshold).
void apply_thresholds(std::vector<ThresholdLine> lines, RuleSet& set);

}  // namespace penstock::nids
