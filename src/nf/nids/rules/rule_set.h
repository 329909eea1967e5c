// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The rules that were loaded, and why others were not.

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "nf/nids/rules/rule.h"

namespace penstock::nids {

/// A `suppress` line of threshold.config: for one rule, all rules of a gid (sid 0), or all rules (both 0).
struct Suppression {
  std::uint32_t gid = 1;
  std::uint32_t sid = 0;
  bool always = true;               // without `track`
  TrackBy track = TrackBy::source;  // by_src, by_dst; `both`: by_either
  AddressSet addresses;
};

struct RuleSet {
  std::vector<Rule> rules;  // in file order
  std::vector<Suppression> suppressions;

  // Names of flowbits, flowints and xbits; rules refer to them by index.
  std::vector<std::string> flowbits, flowints, xbits;

  /// URL prefixes of references ("https://…?name="), by the kind that a rule's references name.
  std::map<std::string, std::string, std::less<>> references;

  // Rules that were not loaded (load_table.h).
  struct Left {
    std::uint32_t sid = 0;  // 0: no sid found
    Error why;
    std::string reason;  // the reason to count by: "option http.uri", "protocol dns", "syntax"
    /// Whether the rule is wrong for Suricata and Snort too. Other rules need an unsupported feature.
    [[nodiscard]] bool is_mistake() const;
  };
  std::vector<Left> left_out;

  /// A classtype that rules use and classification.config does not define.
  struct UnknownClass {
    Place place;  // in the first rule that uses it
    std::string name;
    std::string meant;  // the class with the most similar name, if any
    std::size_t rules = 1;
  };
  std::map<std::string, UnknownClass, std::less<>> unknown_classes;  // by lower-case name
  std::size_t more_rules_of_unknown_classes = 0;                     // classes after the first hundred are only counted

  std::set<std::string, std::less<>> named_variables;  // variables that any rule names, directly or through other
                                                       // variables
  bool has_rule = false;                               // some line looks like a rule, whether or not it was loaded
  std::size_t disabled = 0;                            // rules that are commented out
  [[nodiscard]] std::map<std::string, std::size_t> left_out_by_reason() const;
};

}  // namespace penstock::nids
