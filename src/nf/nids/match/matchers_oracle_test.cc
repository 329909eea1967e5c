// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares Hyperscan, the Aho-Corasick automaton and the hashed filter with a search for each literal at each position.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "nf/nids/match/literals_for_test.h"
#include "nf/nids/match/pattern_matcher.h"
#include "nf/nids/match/rarity.h"

namespace penstock::nids {
namespace {

using testing::Bytes;
using testing::Draw;
using testing::Found;
using testing::literal;

std::string name_of(MatcherKind kind) {
  switch (kind) {
    case MatcherKind::hyperscan: return "Hyperscan";
    case MatcherKind::aho_corasick: return "AhoCorasick";
    case MatcherKind::hashed_filter: break;
  }
  return "HashedFilter";
}

class Matchers : public ::testing::TestWithParam<MatcherKind> {
 protected:
  void use(std::vector<Literal> literals) {
    literals_ = std::move(literals);
    auto made = make_pattern_matcher(GetParam(), literals_);
    ASSERT_TRUE(made) << to_string(made.error());
    matcher_ = std::move(*made);
    scratch_ = matcher_->make_scratch();
  }

  /// In memory of exactly its size, so that a sanitizer detects reads past its end.
  Found scan(std::span<const std::uint8_t> text) {
    const Bytes own(text.begin(), text.end());
    LiteralSet found(literals_.size());
    matcher_->scan(own, scratch_.get(), found);
    Found set(found.list().begin(), found.list().end());
    EXPECT_EQ(set.size(), found.list().size());
    return set;
  }

  void expect_oracle(const Bytes& text) {
    ASSERT_EQ(scan(text), testing::search(literals_, text))
        << matcher_->description() << ", " << text.size() << " bytes";
  }

  std::vector<Literal> literals_;
  std::unique_ptr<PatternMatcher> matcher_;
  std::unique_ptr<PatternMatcher::Scratch> scratch_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, Matchers,
                         ::testing::Values(MatcherKind::hyperscan, MatcherKind::aho_corasick,
                                           MatcherKind::hashed_filter),
                         [](const auto& kind) { return name_of(kind.param); });

TEST_P(Matchers, FindLiteralsThatOverlapAndNestAndEndAlike) {
  use({literal("he"), literal("she"), literal("his"), literal("hers"), literal("ushers"), literal("s"), literal("e"),
       literal("rs"), literal("xushersx"), literal("HERS"), literal("hErS", true), literal("he"),
       literal("abcdabcdabcd"), literal("bcdabcda")});
  for (const char* const text :
       {"ushers", "she", "h", "HERS", "xUSHERSx", "abcdabcdabcd", "abcdabcdabc", "", "s", "hhhhe"}) {
    ASSERT_NO_FATAL_FAILURE(expect_oracle(testing::bytes_of(text)));
  }
}

TEST_P(Matchers, DistinguishCaseIfItMatters) {
  use({literal("Content"), literal("content", true), literal("CONTENT"), literal("[\\]^_`{|}~", true),
       literal("@AZ[`az{", true), literal("\xc1\xe1", true), literal("A"), literal("a"), literal("B", true)});
  for (const char* const text : {"Content", "content", "cONTENT", "CONTENT", "[\\]^_`{|}~", "{|}~\x7f@[\\]^",
                                 "@az[`AZ{", "`az{@AZ[", "\xe1\xe1", "\xc1\xe1", "a", "A", "b", "B", "ab"}) {
    ASSERT_NO_FATAL_FAILURE(expect_oracle(testing::bytes_of(text)));
  }
}

TEST_P(Matchers, FindEveryByteByItself) {
  std::vector<Literal> literals;
  for (unsigned byte = 0; byte < 256; ++byte) {
    literals.push_back({{static_cast<std::uint8_t>(byte)}, byte % 2 == 0});
    literals.push_back({{static_cast<std::uint8_t>(byte), static_cast<std::uint8_t>(255 - byte)}, byte % 2 == 1});
  }
  use(std::move(literals));
  Draw draw(1);
  for (const std::uint32_t length : {0U, 1U, 2U, 3U, 15U, 16U, 17U, 100U}) {
    ASSERT_NO_FATAL_FAILURE(expect_oracle(draw.bytes(length)));
  }
}

TEST_P(Matchers, FindRunsOfOneByteInTextsOfOneByte) {
  for (const char byte : {'\0', ' ', 'A', '\xff'}) {
    std::vector<Literal> literals;
    for (const std::size_t length : {1U, 2U, 3U, 4U, 5U, 7U, 8U, 9U, 16U, 17U, 255U, 300U}) {
      literals.push_back(literal(std::string(length, byte), length % 2 == 0));
      literals.push_back(literal(std::string(length, byte) + "b"));
      literals.push_back(literal("b" + std::string(length, byte)));
    }
    use(std::move(literals));
    for (const std::size_t length : {1U, 2U, 4U, 8U, 9U, 16U, 17U, 300U, 1500U}) {
      Bytes text(length, static_cast<std::uint8_t>(byte));
      ASSERT_NO_FATAL_FAILURE(expect_oracle(text));
      text.back() = 'b';
      ASSERT_NO_FATAL_FAILURE(expect_oracle(text));
      text.front() = 'b';
      ASSERT_NO_FATAL_FAILURE(expect_oracle(text));
    }
  }
}

TEST_P(Matchers, FindRandomLiteralsOfFewLettersInTextsOfThem) {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U, 6U}) {
    Draw draw(seed);
    const std::string_view alphabet = seed % 2 == 0 ? "ab" : std::string_view("aAbB\0\x80", 6);
    std::vector<Literal> literals;
    for (int i = 0; i < 200; ++i) {
      literals.push_back({draw.bytes(1 + draw.below(draw.one_in(4) ? 40 : 10), alphabet), draw.one_in(2)});
    }
    // Literals that are suffixes and prefixes of each other, and one twice.
    for (int i = 0; i < 20; ++i) {
      const Literal whole = literals[draw.below(200)];
      const auto cut = draw.below(static_cast<std::uint32_t>(whole.bytes.size()));
      literals.push_back({{whole.bytes.begin() + cut, whole.bytes.end()}, draw.one_in(2)});
      literals.push_back({{whole.bytes.begin(), whole.bytes.end() - cut}, draw.one_in(2)});
    }
    literals.push_back(literals.front());
    use(std::move(literals));
    for (std::uint32_t length = 0; length < 70; ++length) {
      ASSERT_NO_FATAL_FAILURE(expect_oracle(draw.bytes(length, alphabet)));
    }
    ASSERT_NO_FATAL_FAILURE(expect_oracle(draw.bytes(5'000, alphabet)));
  }
}

TEST_P(Matchers, FindThousandsOfRuleLiteralsInTraffic) {
  for (const std::uint32_t count : {1U, 150U, 3'000U}) {
    Draw draw(count);
    std::vector<Literal> literals;
    for (std::uint32_t i = 0; i < count; ++i) literals.push_back(draw.rule_literal());
    use(std::move(literals));
    std::size_t found = 0;
    for (const std::uint32_t length : {20U, 64U, 300U, 1460U, 2560U, 9000U}) {
      Bytes text = draw.traffic(length);
      for (int i = 0; i < 5; ++i) draw.plant(literals_[draw.below(count)], text);
      ASSERT_NO_FATAL_FAILURE(expect_oracle(text));
      found += scan(text).size();
    }
    EXPECT_GT(found, 5U);
  }
}

TEST_P(Matchers, FindALiteralAtEveryPositionOfTextsOfEveryLength) {
  use({literal("needle"), literal("ab"), literal("\x01"), literal("Sixteen Bytes it"),
       literal("seventeen bytes i", true), literal("abc")});
  Draw draw(3);
  for (std::size_t length = 1; length < 52; ++length) {
    for (const Literal& each : literals_) {
      for (std::size_t at = 0; at + each.bytes.size() <= length; ++at) {
        Bytes text(length, std::uint8_t{'.'});
        draw.plant_at(each, text, at);
        ASSERT_NO_FATAL_FAILURE(expect_oracle(text));
        text.pop_back();  // if the literal was at the end, its last byte is now missing
        ASSERT_NO_FATAL_FAILURE(expect_oracle(text));
      }
    }
  }
}

/// How streams use it: literals of at most a few bytes, the parts separately, and the seams.
TEST_P(Matchers, FindInBothPartsAndAcrossTheSeamWhatIsInTheWhole) {
  Draw draw(4);
  std::vector<Literal> literals;
  for (int i = 0; i < 300; ++i) literals.push_back(draw.rule_literal());
  for (int i = 0; i < 50; ++i) literals.push_back({draw.bytes(1 + draw.below(8), "ab"), draw.one_in(2)});
  use(cut_literals(literals));
  for (int round = 0; round < 6; ++round) {
    Bytes text = draw.traffic(200);
    for (int i = 0; i < 6; ++i) draw.plant(literals_[draw.below(static_cast<std::uint32_t>(literals_.size()))], text);
    const Found whole = testing::search(literals_, text);
    ASSERT_EQ(scan(text), whole);
    const std::span<const std::uint8_t> all(text);
    for (std::size_t cut = 0; cut <= all.size(); ++cut) {
      constexpr std::size_t kSide = kCutLiteralBytes - 1;
      const std::size_t from = cut - std::min(cut, kSide);
      Found parts = scan(all.first(cut));
      parts.merge(scan(all.subspan(cut)));
      parts.merge(scan(all.subspan(from, std::min(all.size(), cut + kSide) - from)));
      ASSERT_EQ(parts, whole) << "cut at " << cut;
    }
  }
}

}  // namespace
}  // namespace penstock::nids
