// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/match/vectorscan_matcher.h"

#include <gmock/gmock.h>

#include <string_view>

namespace penstock::nids {
namespace {

Literal literal(std::string_view text, bool nocase = false) { return {{text.begin(), text.end()}, nocase}; }

std::vector<std::uint32_t> found_in(std::string_view text, const PatternMatcher& matcher, std::size_t literals) {
  LiteralSet found(literals);
  const auto scratch = matcher.make_scratch();
  matcher.scan({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, scratch.get(), found);
  return {found.list().begin(), found.list().end()};
}

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST(VectorscanMatcher, FindsEachLiteralOnceHoweverOftenItOccurs) {
  const std::vector<Literal> literals{literal("abc"), literal("GET", true), literal(std::string_view("\0\xff.*", 4)),
                                      literal("bc")};
  const auto matcher = make_pattern_matcher(MatcherKind::vectorscan, literals);
  ASSERT_TRUE(matcher) << to_string(matcher.error());
  EXPECT_THAT(found_in("abcabcabc", **matcher, literals.size()), UnorderedElementsAre(0, 3));
  EXPECT_THAT(found_in("a gEt ABC", **matcher, literals.size()), ElementsAre(1));
  EXPECT_THAT(found_in(std::string_view("x\0\xff.*x", 6), **matcher, literals.size()), ElementsAre(2));
  EXPECT_THAT(found_in("", **matcher, literals.size()), IsEmpty());
}

TEST(VectorscanMatcher, OfNoLiteralsFindsNothing) {
  const auto matcher = make_pattern_matcher(MatcherKind::vectorscan, {});
  ASSERT_TRUE(matcher);
  EXPECT_THAT(found_in("abc", **matcher, 0), IsEmpty());
}

TEST(PatternMatcher, RefusesAnEmptyLiteral) {
  const std::vector<Literal> literals{literal("abc"), literal("")};
  EXPECT_FALSE(make_pattern_matcher(MatcherKind::vectorscan, literals));
}

}  // namespace
}  // namespace penstock::nids
