// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/counted_expression.h"

#include <gtest/gtest.h>

namespace penstock::nids {
namespace {

std::string counted(std::string_view pattern, bool extended = false) {
  const auto made = with_callouts(pattern, extended);
  return made ? made->pattern : "none";
}

TEST(CountedExpression, HasNoCalloutsWithoutBacktracking) {
  for (const std::string_view pattern : {"abc", "a|b", "[a*+]{3}", "\\*\\{1,2\\}", "a{,2}", "a{x}", "(?<=a|bc)d",
                                         "(?!a)b", "(?i)abc", "\\x{41}\\p{Lu}"}) {
    EXPECT_EQ(counted(pattern), pattern);
  }
}

TEST(CountedExpression, HasOneAfterEachQuantifierThatLeavesAChoice) {
  EXPECT_EQ(counted("a*b+c?d{2,}e{2,3}f{4}"), "a*(?C)b+(?C)c?(?C)d{2,}(?C)e{2,3}(?C)f{4}");
  EXPECT_EQ(counted("a*?b++"), "a*?(?C)b++(?C)");
  EXPECT_EQ(counted("[^\\]]*x"), "[^\\]]*(?C)x");
  EXPECT_EQ(counted("[]a]+[^]a]+[[:alpha:]]+"), "[]a]+(?C)[^]a]+(?C)[[:alpha:]]+(?C)");
  EXPECT_EQ(counted("(?=.*a)b"), "(?=.*(?C)a)b");
}

TEST(CountedExpression, HasOneAtTheEndOfEachAlternativeOfAGroup) {
  EXPECT_EQ(counted("(a|b)c"), "(a(?C)|b(?C))c");
  EXPECT_EQ(counted("(?:a|(?<n>b))*c"), "(?:a(?C)|(?<n>b(?C))(?C))*(?C)c");
  EXPECT_EQ(counted("(?i:a)"), "(?i:a(?C))");
}

TEST(CountedExpression, HasOneInAnItemThatRepeatsManyTimes) {
  EXPECT_EQ(counted("a[^\\n]{500}"), "a[^\\n]{16}(?C1)[^\\n]{484}");
  EXPECT_EQ(with_callouts("a[^\\n]{500}", false)->longest_repeat, 484U);
  EXPECT_EQ(counted(".{16,20}"), ".{16,20}(?C)");
  EXPECT_EQ(counted(".{17,20}+\\d{100,}?"), ".{16}(?C1).{1,4}+(?C)\\d{16}(?C1)\\d{84,}?(?C)");
  EXPECT_EQ(counted("(?:a){500}"), "(?:a(?C)){500}");
  EXPECT_EQ(counted("\\12"), "(?C1)\\12");  // may refer to a group of any length
  EXPECT_EQ(with_callouts("a*", false)->longest_repeat, 0U);
}

TEST(CountedExpression, IsNotMadeOfUnsupportedConstructs) {
  for (const std::string_view pattern : {"(?(1)a|b)", "(?R)", "(?1)", "(?P>n)", "(?&n)", "(*ANY)a", "(?#x)a", "(?C)a",
                                         "\\Qa\\E", "[\\Qa\\E]", "a)", "[a", "[[:a]", "a\\", "\\x{41", "(?<n"}) {
    EXPECT_EQ(counted(pattern), "none") << pattern;
  }
  EXPECT_EQ(counted("a # b*", true), "none");
  EXPECT_EQ(counted("(?x)a # b*"), "none");
  EXPECT_EQ(counted("a b*", true), "a b*(?C)");
}

}  // namespace
}  // namespace penstock::nids
