// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/rules/rule_text.h"

#include <gmock/gmock.h>

#include "nf/nids/rules/rules_for_test.h"

namespace penstock::nids {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kRule = "alert tcp any any -> any any (sid:1;)";

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> all;
  RuleLines lines(text);
  for (RuleLine line; lines.next(line);) {
    all.push_back((line.disabled ? "#" : "") + std::to_string(line.line) + ' ' + std::string(line.text));
  }
  return all;
}

TEST(RuleText, LeavesOutCommentsAndEmptyLines) {
  EXPECT_THAT(lines_of("\n# a comment\n   \n a b\r\n; also one\nc"), ElementsAre("4 a b", "6 c"));
}

TEST(RuleText, JoinsLinesThatEndWithABackslash) {
  EXPECT_THAT(lines_of("a \\\n  b \\  \nc\nd"), ElementsAre("1 a   b c", "4 d"));
  EXPECT_THAT(lines_of("a\\\n# b\\\n"), ElementsAre("1 a# b"));
  EXPECT_THAT(lines_of("# a \\\nb"), ElementsAre("2 b"));
}

TEST(RuleText, DistinguishesDisabledRulesFromComments) {
  EXPECT_THAT(lines_of("#alert tcp any any -> any any (sid:1;)\n"
                       "## drop tcp any any -> any any (sid:2;)\n"
                       "# alert us of this\n"),
              ElementsAre("#1 alert tcp any any -> any any (sid:1;)", "#2 drop tcp any any -> any any (sid:2;)"));
}

TEST(RuleText, LocatesAnErrorInAJoinedRule) {
  const RuleSet set = rules_of("\nalert tcp any any -> any any ( \\\n   msg:\"x\"; \\\n  dpeth:4; \\\n  sid:7;)\n");
  ASSERT_EQ(set.left_out.size(), 1U);
  const Error& why = set.left_out[0].why;
  EXPECT_EQ(why.place.file, "test.rules");
  EXPECT_EQ(why.place.line, 4U);
  EXPECT_EQ(why.place.column, 3U);
  EXPECT_EQ(set.left_out[0].sid, 7U);
}

TEST(RuleText, RefusesARuleThatIsTooLong) {
  const std::string content(kMostRuleBytes, 'a');
  EXPECT_THAT(complaint_with("content:\"" + content + "\";"), StartsWith("too long | "));
  std::string joined = "alert tcp any any -> any any (content:\"\\\n";
  for (int i = 0; i < 100; ++i) joined += std::string(1000, 'a') + "\\\n";
  EXPECT_THAT(complaint_of(joined + "\"; sid:1;)"), StartsWith("too long | "));
}

TEST(RuleText, ContinuesAfterARuleThatIsTooLong) {
  const RuleSet set = rules_of(std::string(1'000'000, '(') + '\n' + std::string(kRule));
  EXPECT_EQ(set.rules.size(), 1U);
  EXPECT_EQ(set.left_out.size(), 1U);
}

TEST(RuleText, ASemicolonInQuotesEndsTheOptionUnlessItIsEscaped) {
  EXPECT_EQ(rule_with("msg:\"a\\;b\";").message, "a;b");
  EXPECT_THAT(complaint_with("msg:\"a;b\";"), HasSubstr("unclosed quotes"));
}

TEST(RuleText, RefusesMalformedRules) {
  for (const std::string_view text : {
           "alert tcp any any -> any any",
           "alert tcp any any -> any any (sid:1;",
           "alert tcp any any -> any any (sid:1)",
           "alert tcp any any -> any any (sid:1;) x",
           "alert tcp any any any any (sid:1;)",
           "alert tcp any any -> any (sid:1;)",
           "alert tcp any any -> any any 80 (sid:1;)",
           "alert tcp any any <- any any (sid:1;)",
           "alert tcp [10.0.0.1 any -> any any (sid:1;)",
           "alert tcp 10.0.0.1] any -> any any (sid:1;)",
           "alert tcp any any -> any any (:1; sid:1;)",
           "alert tcp any any -> any any (;sid:1;)",
           "alert (sid:1;)",
           "(",
           ")",
           "a",
           "((((((((",
           "alert tcp any any -> any any ()",
       }) {
    const RuleSet set = rules_of(text);
    EXPECT_TRUE(set.rules.empty()) << text;
    ASSERT_EQ(set.left_out.size(), 1U) << text;
    EXPECT_FALSE(set.left_out[0].why.message.empty()) << text;
    EXPECT_EQ(set.left_out[0].why.place.line, 1U) << text;
  }
}

TEST(RuleText, SplitsTheHeaderWithAnySpacing) {
  const Rule rule = rule_of("  alert\ttcp  [ 10.0.0.1 , 10.0.0.2 ]   [80, 81] \t<>  any any(sid:1;)");
  EXPECT_EQ(rule.direction, RuleDirection::both_ways);
  EXPECT_EQ(rule.source.v4.size(), 1U);
  EXPECT_THAT(rule.source_ports.ranges, ElementsAre(PortSet::Range{80, 81}));
}

}  // namespace
}  // namespace penstock::nids
