// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// All rules that were loaded, and what became of those that were not.

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "nf/nids/rules/rule.h"

namespace penstock::nids {

/// threshold.config's, of one rule, of all of a gid (sid 0), or of all (both 0).
struct Suppression {
  std::uint32_t gid = 1;
  std::uint32_t sid = 0;
  bool always = true;               // without `track`
  TrackBy track = TrackBy::source;  // by_src, by_dst; `both`: by_either
  AddressSet addresses;
};

struct RuleSet {
  std::vector<Rule> rules;  // in the files' order
  std::vector<Suppression> suppressions;

  // What rules name by number: flowbits, flowints, xbits.
  std::vector<std::string> flowbits, flowints, xbits;

  /// By the kind that a rule's references name: what stands in front of their ids ("https://…?name=").
  std::map<std::string, std::string, std::less<>> references;

  // What became of the rules that are not here (load_table.h).
  struct Left {
    std::uint32_t sid = 0;  // 0: none was found
    Error why;
    std::string reason;  // what is counted: "option http.uri", "protocol dns", "syntax"
    /// The rule is wrong; it would be so for Suricata and Snort too. Others need what is not supported.
    [[nodiscard]] bool is_mistake() const;
  };
  std::vector<Left> left_out;

  /// A classtype that classification.config does not have, of rules that were loaded.
  struct UnknownClass {
    Place place;  // in the first of these rules
    std::string name;
    std::string meant;  // the class with the nearest name, if any
    std::size_t rules = 1;
  };
  std::map<std::string, UnknownClass, std::less<>> unknown_classes;  // by their names in lower case
  std::size_t more_rules_of_unknown_classes = 0;                     // beyond the first hundred classes

  std::set<std::string, std::less<>> named_variables;  // those that rules of any kind name, by themselves or by others
  bool has_rule = false;                               // a line begins as a rule does, whatever became of it
  std::size_t disabled = 0;                            // rules in comments
  [[nodiscard]] std::map<std::string, std::size_t> left_out_by_reason() const;
};

}  // namespace penstock::nids
