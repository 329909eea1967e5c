// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/expression_automaton.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

namespace penstock::nids {
namespace {

using Kind = ExpressionAutomaton::Instruction::Kind;

/// Tries all paths, one after the other.
bool accepts(const ExpressionAutomaton& automaton, std::string_view text) {
  const auto instructions = automaton.instructions();
  const auto accepts_from = [&](const auto& self, std::size_t instruction, std::size_t at,
                                std::set<std::size_t> passed) -> bool {
    if (!passed.insert(instruction).second) return false;
    const auto& it = instructions[instruction];
    switch (it.kind) {
      case Kind::match: return true;
      case Kind::begin: return at == 0 && self(self, instruction + 1, at, passed);
      case Kind::end: return at + 1 >= text.size() && self(self, instruction + 1, at, passed);
      case Kind::split: return self(self, it.first, at, passed) || self(self, it.second, at, passed);
      case Kind::bytes: break;
    }
    return at < text.size() && automaton.byte_set(it.first)[static_cast<unsigned char>(text[at])] &&
           self(self, instruction + 1, at + 1, {});
  };
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (accepts_from(accepts_from, 0, at, {})) return true;
  }
  return false;
}

bool accepts(std::string pattern, std::string_view text, bool caseless = false) {
  Pcre pcre;
  pcre.pattern = std::move(pattern);
  pcre.caseless = caseless;
  const auto automaton = ExpressionAutomaton::of(pcre);
  EXPECT_TRUE(automaton) << pcre.pattern;
  return automaton && accepts(*automaton, text);
}

TEST(ExpressionAutomaton, AcceptsWhatTheExpressionMatches) {
  EXPECT_TRUE(accepts("a[b-d]{2}\\d+;", "xxabd42;"));
  EXPECT_FALSE(accepts("a[b-d]{2}\\d+;", "xxabe42;"));
  EXPECT_FALSE(accepts("a[b-d]{2}\\d+;", "xxabd;"));
  EXPECT_TRUE(accepts("(?:GET|POST)?x(ab|c)*y", "POSTxababcy"));
  EXPECT_FALSE(accepts("(?:GET|POST)x", "PUTx"));
  EXPECT_TRUE(accepts("\\x41\\.\\n", "A.\n"));
  EXPECT_FALSE(accepts("a.b", "a\nb"));
  EXPECT_TRUE(accepts("(?s)a.b", "a\nb"));
}

TEST(ExpressionAutomaton, DistinguishesCaseIfItMatters) {
  EXPECT_FALSE(accepts("ab[c]", "aBC"));
  EXPECT_TRUE(accepts("ab[c]", "aBC", true));
  EXPECT_TRUE(accepts("(?i)ab[c]", "aBC"));
}

TEST(ExpressionAutomaton, KnowsWhereTheTextBeginsAndEnds) {
  EXPECT_TRUE(accepts("^ab$", "ab"));
  EXPECT_TRUE(accepts("^ab$", "ab\n"));
  EXPECT_FALSE(accepts("^ab", "xab"));
  EXPECT_FALSE(accepts("ab\\z", "abxx"));
}

// Constructs that it does not support make it accept more, never less.
TEST(ExpressionAutomaton, AcceptsMoreForUnsupportedConstructs) {
  EXPECT_TRUE(accepts("(a|b)x\\1", "axb")) << "a reference";
  EXPECT_TRUE(accepts("a(?!b)", "ab")) << "a lookahead";
  EXPECT_TRUE(accepts("a\\bb", "ab")) << "a word boundary";
  EXPECT_TRUE(accepts("xa{2,1000}y", "xay")) << "too many repetitions";
  EXPECT_TRUE(accepts("(?m)^b", "ab")) << "lines";
}

TEST(ExpressionAutomaton, IsNotMadeOfUnsupportedOrTooLongExpressions) {
  const auto is_made_of = [](std::string pattern) {
    Pcre pcre;
    pcre.pattern = std::move(pattern);
    return ExpressionAutomaton::of(pcre).has_value();
  };
  EXPECT_FALSE(is_made_of("\\Qa\\E"));
  EXPECT_FALSE(is_made_of("a(?#comment)b"));
  EXPECT_TRUE(is_made_of("(a{100}){20}"));
  EXPECT_FALSE(is_made_of("((a{100}b{100}){100}){100}"));
}

}  // namespace
}  // namespace penstock::nids
