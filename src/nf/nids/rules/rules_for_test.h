// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads rules of one line, for tests.

#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "nf/nids/rules/rule_reader.h"

namespace penstock::nids {

/// The set of rules in the text; the test fails if it cannot be read at all.
inline RuleSet rules_of(std::string_view text, const Variables& variables = default_variables()) {
  auto set = read_rules_text(text, "test.rules", variables);
  if (!set) {
    ADD_FAILURE() << to_string(set.error());
    return {};
  }
  return std::move(*set);
}

/// The only rule of the text, which must load.
inline Rule rule_of(std::string_view text) {
  RuleSet set = rules_of(text);
  for (const RuleSet::Left& left : set.left_out) ADD_FAILURE() << text << '\n' << to_string(left.why);
  if (set.rules.size() != 1) {
    ADD_FAILURE() << text << ": " << set.rules.size() << " rules";
    return {};
  }
  return std::move(set.rules[0]);
}

inline std::string with_options(std::string_view options, std::string_view protocol = "tcp") {
  return "alert " + std::string(protocol) + " any any -> any any (" + std::string(options) + " sid:1;)";
}

/// A rule with these options.
inline Rule rule_with(std::string_view options, std::string_view protocol = "tcp") {
  return rule_of(with_options(options, protocol));
}

/// Why the text's only rule does not load: a reason and the error; empty if it loads.
inline std::string complaint_of(std::string_view text) {
  const RuleSet set = rules_of(text);
  if (set.left_out.size() != 1) return "";
  return set.left_out[0].reason + " | " + to_string(set.left_out[0].why);
}
inline std::string complaint_with(std::string_view options, std::string_view protocol = "tcp") {
  return complaint_of(with_options(options, protocol));
}

}  // namespace penstock::nids
