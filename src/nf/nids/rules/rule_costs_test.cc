// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/rules/rule_costs.h"

#include <gmock/gmock.h>

#include <string>

#include "nf/nids/rules/rule_reader.h"
#include "nf/nids/rules/side_files.h"

namespace penstock::nids {
namespace {

using ::testing::HasSubstr;

/// The error for `text`; empty if it is read.
std::string refusal(const std::string& text, std::size_t most_rules, const Variables& variables = default_variables()) {
  const auto set = read_rules_text(text, "test.rules", variables, most_rules);
  return set ? "" : to_string(set.error());
}

std::string rule(int sid, const std::string& options = "", const std::string& header = "any any -> any any") {
  return "alert tcp " + header + " (" + options + "sid:" + std::to_string(sid) + ";)\n";
}

TEST(RuleCosts, RefuseMoreRulesThanTheBoundLoadedOrNot) {
  const std::string rules =
      rule(1) + "# alert tcp any any -> any any (sid:9;)\n\n" + rule(2, "no_such_option; ") + rule(3);
  EXPECT_EQ(refusal(rules, 3), "");
  EXPECT_EQ(refusal(rules, 2),
            "test.rules:5: too many rules: found more than 2, expected at most 2 (most_rules raises it)");
}

TEST(RuleCosts, RefuseMoreOptionsThanTheBoundInAllRules) {
  std::string contents;
  for (int i = 0; i < 63; ++i) contents += "content:\"a\"; ";
  EXPECT_EQ(refusal(rule(1, contents), 2), "") << "one of two rules may have the options of both";
  EXPECT_EQ(refusal(rule(1, contents) + rule(2), 2),
            "test.rules:2: too many options and list items in all rules: found more than 64, expected at most 64 "
            "(most_rules raises it)");
}

TEST(RuleCosts, RefuseMoreAddressesThanTheBoundInAllRules) {
  std::string networks;
  for (int i = 0; i < 200; ++i) networks += (i == 0 ? "[10." : ",10.") + std::to_string(i) + ".1.0/24";
  Variables variables = default_variables();
  variables["HOME_NET"] = networks + "]";
  std::string rules;
  for (int i = 1; i < 10; ++i) rules += rule(i, "", "$HOME_NET any -> $HOME_NET any");
  EXPECT_EQ(refusal(rules, 9, variables), "");
  networks = "";
  for (int i = 0; i < 255; ++i) networks += (i == 0 ? "[10." : ",10.") + std::to_string(i) + ".1.0/24";
  variables["HOME_NET"] = networks + ",11.0.0.0/8]";
  EXPECT_THAT(refusal(rules, 9, variables),
              HasSubstr("too many addresses and ports in all rules: found more than 36.0 KiB"));
}

/// A_0 has many networks; each following variable names the previous one many times, and is as long.
TEST(VariableResolver, RefusesListsThatTakeTooLongToCombine) {
  Variables variables;
  std::string& first = variables["A_0"];
  for (int i = 0; i < 60'000; ++i) {
    first += (i == 0 ? "[" : ",") + std::to_string(1 + i % 200) + "." + std::to_string(i / 200 % 256) + "." +
             std::to_string(i / 51'200) + ".1";
  }
  first += ']';
  std::string& second = variables["A_1"];
  for (int i = 0; i < 2000; ++i) second += i == 0 ? "[$A_0" : ",$A_0";
  second += ']';
  VariableResolver resolver(variables);
  Complaint why;
  EXPECT_NE(resolver.addresses("$A_0", why), nullptr);
  EXPECT_EQ(resolver.addresses("$A_1", why), nullptr);
  EXPECT_THAT(why.message, HasSubstr("lists too long, including their variables"));
  EXPECT_EQ(why.found, "more than 512.0 MiB in all");
}

TEST(Thresholds, ForAllRulesOfAGidApplyOnceForAnyNumberOfLines) {
  std::string lines;
  for (int count = 1; count <= 100'000; ++count) {
    lines +=
        "threshold gen_id 1, sig_id 0, type limit, track by_src, count " + std::to_string(count) + ", seconds 60\n";
  }
  std::string text;
  for (int sid = 1; sid <= 1000; ++sid) text += rule(sid);
  auto set = read_rules_text(text);
  ASSERT_TRUE(set);
  const Variables none;
  VariableResolver resolver(none);
  const auto read = read_thresholds(lines, "threshold.config", resolver);
  ASSERT_TRUE(read) << to_string(read.error());
  apply_thresholds(*read, *set);
  for (const Rule& one : set->rules) {
    ASSERT_TRUE(one.threshold.has_value());
    EXPECT_EQ(one.threshold->count, 1U) << "the first line's";
  }
}

}  // namespace
}  // namespace penstock::nids
