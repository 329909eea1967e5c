// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/expression_facts.h"

#include <gtest/gtest.h>

#include <string>

#include "nf/nids/detect/matches_for_test.h"

namespace penstock::nids {
namespace {

int longest(const char* pattern) {
  const auto bytes = facts_of(pcre(pattern).option).longest;
  return bytes ? static_cast<int>(*bytes) : -1;
}

std::string literal(const char* pattern, bool caseless = false) {
  Pcre of = pcre(pattern).option;
  of.caseless = caseless;
  const auto found = facts_of(of).literal;
  if (!found) return "none";
  return (found->nocase ? "i:" : "") + std::string(found->bytes.begin(), found->bytes.end());
}

TEST(ExpressionFacts, KnowHowFarAMatchReaches) {
  EXPECT_EQ(longest("abc"), 3);
  EXPECT_EQ(longest("a|bcd|e"), 3);
  EXPECT_EQ(longest("a?[bc]{2,5}(?:d|ef){3}"), 1 + 5 + 6);
  EXPECT_EQ(longest("\\x41\\d\\{.\\012"), 5);
  EXPECT_EQ(longest("(?<!ab)c(?=de)"), 5);
  EXPECT_EQ(longest("\\bword\\W"), 6);  // the assertion tests the byte before
  EXPECT_EQ(longest(""), 0);
}

TEST(ExpressionFacts, KnowNoBoundOfUnboundedExpressions) {
  for (const char* const pattern : {"a*", "a+", "a{2,}", "(?:a|b+)c", "(a)\\1", "\\R", "(?R)", "a{60000}b{60000}"}) {
    EXPECT_EQ(longest(pattern), -1) << pattern;
  }
}

TEST(ExpressionFacts, KnowBytesThatEachMatchHas) {
  EXPECT_EQ(literal("attack at dawn"), "attack at dawn");
  EXPECT_EQ(literal("\\Wsecret[^\\w/]"), "secret");
  EXPECT_EQ(literal("^GET\\s+\\/evil\\.php\\x3f"), "/evil.php?");
  EXPECT_EQ(literal("ab+cde"), "cde");
  EXPECT_EQ(literal("(foo|bar)bazz?"), "baz");
  EXPECT_EQ(literal("abc(?!def)ghij"), "ghij");
  EXPECT_EQ(literal("word", true), "i:word");
  EXPECT_EQ(literal("(?i)word"), "i:word");
  EXPECT_EQ(literal("a\\bbcd"), "abcd");
}

TEST(ExpressionFacts, KnowNoBytesThatAMatchMayLack) {
  for (const char* const pattern : {"abc|def", "(abc)", "abc*", "ab[c]d", "abx?cd", "abc{0,2}", "(?:abcd)?",
                                    "\\d\\d\\d", "a.b.c", "(?x)abc d", "(*ANYCRLF)abcd", "ab"}) {
    const std::string found = literal(pattern);
    EXPECT_TRUE(found == "none") << pattern << ": " << found;
  }
  Pcre extended = pcre("abc def").option;
  extended.extended = true;
  EXPECT_FALSE(facts_of(extended).literal);
}

}  // namespace
}  // namespace penstock::nids
