// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares expressions with callouts with plain PCRE2: both must find the same, for random expressions on random texts
// and for expressions of real rules.

#include <gtest/gtest.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "nf/nids/detect/counted_expression.h"
#include "nf/nids/detect/expression_facts.h"
#include "nf/nids/detect/pcre_program.h"
#include "nf/nids/rules/rule_reader.h"

namespace penstock::nids {
namespace {

/// Without callouts, and without effective limits.
class Plain {
 public:
  enum class How : std::uint8_t { jit, interpreted };
  Plain(const Pcre& pcre, How how) {
    std::uint32_t options = 0;
    if (pcre.caseless) options |= PCRE2_CASELESS;
    if (pcre.multiline) options |= PCRE2_MULTILINE;
    if (pcre.dotall) options |= PCRE2_DOTALL;
    if (pcre.extended) options |= PCRE2_EXTENDED;
    if (pcre.anchored) options |= PCRE2_ANCHORED;
    if (pcre.dollar_endonly) options |= PCRE2_DOLLAR_ENDONLY;
    if (pcre.ungreedy) options |= PCRE2_UNGREEDY;
    int number = 0;
    PCRE2_SIZE offset = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pcre.pattern.data()), pcre.pattern.size(), options, &number,
                              &offset, nullptr));
    data_.reset(pcre2_match_data_create(1, nullptr));
    if (code_ && how == How::jit) pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
  }
  [[nodiscard]] bool compiles() const { return code_ != nullptr; }
  /// With callouts it may exceed PCRE2's size limit.
  [[nodiscard]] bool is_large() const {
    std::size_t bytes = 0;
    return compiles() && pcre2_pattern_info(code_.get(), PCRE2_INFO_SIZE, &bytes) == 0 && bytes > 4096;
  }
  using Found = std::optional<std::pair<std::size_t, std::size_t>>;
  [[nodiscard]] Found find(std::string_view text) {
    const int found =
        pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0, data_.get(), nullptr);
    if (found < 0) return std::nullopt;
    const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(data_.get());
    return std::pair{ends[0], ends[1]};
  }

 private:
  std::unique_ptr<pcre2_code, PcreDeleter> code_;
  std::unique_ptr<pcre2_match_data, PcreDeleter> data_;
};

bool is_in(const Literal& literal, std::string_view text) {
  const auto same = [&](std::uint8_t a, char b) {
    return a == static_cast<std::uint8_t>(b) || (literal.nocase && std::tolower(a) == std::tolower(b));
  };
  return std::search(text.begin(), text.end(), literal.bytes.begin(), literal.bytes.end(),
                     [&](char a, std::uint8_t b) { return same(b, a); }) != text.end();
}

class RandomExpression {
 public:
  explicit RandomExpression(std::mt19937& random) : random_(random) {}
  std::string make() {
    groups_ = 0;
    return alternatives(3);
  }

 private:
  unsigned below(unsigned end) { return static_cast<unsigned>(random_() % end); }
  std::string item(int depth) {
    static const std::vector<std::string> kItems{"a",           "abb",   "aabb", "b",   "c",   "ab",   ".",
                                                 "\\w",         "[ab]",  "[^a]", "\\d", "\\b", "[]a]", "\\x61",
                                                 "[[:alpha:]]", "\\012", "\\{",  "{",   "}"};
    if (depth == 0 || below(3) != 0) return kItems[below(static_cast<unsigned>(kItems.size()))];
    static const std::vector<std::string> kGroups{"(", "(?:", "(?i:", "(?>", "(?=", "(?!", "(?|"};
    if (below(12) == 0) return "(?<=a)";
    if (below(12) == 0) return "(?<!b|ca)";
    if (groups_ > 0 && below(10) == 0) return "\\1";
    const std::string open = kGroups[below(static_cast<unsigned>(kGroups.size()))];
    std::string made = open + alternatives(depth - 1) + ")";
    if (open == "(") ++groups_;
    return made;
  }
  std::string sequence(int depth) {
    static const std::vector<std::string> kQuantifiers{"*",   "+",    "?",     "*?",     "+?",   "??",   "*+",   "++",
                                                       "{2}", "{1,}", "{0,2}", "{1,3}?", "{,2}", "{16}", "{17,}"};
    std::string made;
    for (unsigned left = 1 + below(3); left > 0; --left) {
      made += item(depth);
      if (below(3) == 0) made += kQuantifiers[below(static_cast<unsigned>(kQuantifiers.size()))];
    }
    return made;
  }
  std::string alternatives(int depth) {
    std::string made = sequence(depth);
    while (below(4) == 0) made += "|" + (below(6) == 0 ? std::string() : sequence(depth));
    return made;
  }

  std::mt19937& random_;
  unsigned groups_ = 0;
};

TEST(CountedExpressionOracle, FindsWhatThePlainExpressionFinds) {
  std::mt19937 random(1);
  RandomExpression expressions(random);
  PcreScratch scratch;
  unsigned compiled = 0, found = 0, with = 0, differ = 0, bounded = 0, with_literal = 0;
  for (unsigned i = 0; i < 20'000; ++i) {
    Pcre pcre;
    pcre.pattern = expressions.make();
    pcre.caseless = i % 5 == 0;
    pcre.multiline = i % 7 == 0;
    pcre.ungreedy = i % 11 == 0;
    pcre.extended = i % 13 == 0;
    Plain plain(pcre, Plain::How::jit), interpreted(pcre, Plain::How::interpreted);
    if (plain.is_large()) continue;
    auto program = PcreProgram::compile(pcre);
    ASSERT_EQ(program.has_value(), plain.compiles()) << pcre.pattern;
    if (!program) continue;
    ++compiled;
    const ExpressionFacts facts = facts_of(pcre);
    bounded += facts.longest ? 1 : 0;
    with += with_callouts(pcre.pattern, pcre.extended) ? 1 : 0;
    for (int round = 0; round < 5; ++round) {
      std::string text(random() % 40, 'a');
      for (char& c : text) c = "aabbcA1\n"[random() % 8];
      scratch.begin_frame(1'000'000'000);
      scratch.begin_rule(1'000'000'000);
      const PcreProgram::Match match =
          program->find({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, 0, scratch);
      if (match.outcome == PcreProgram::Outcome::failed) continue;  // at PCRE2's limits
      Plain::Found here;
      if (match.outcome == PcreProgram::Outcome::match) here = std::pair{match.begin, match.end};
      found += here ? 1 : 0;
      if (here && facts.longest) {
        EXPECT_LE(here->second - here->first, *facts.longest) << pcre.pattern << " in " << text;
      }
      if (here && facts.literal) {
        EXPECT_TRUE(is_in(*facts.literal, text.substr(here->first, here->second - here->first)))
            << pcre.pattern << " in " << text;
        ++with_literal;
      }
      // PCRE2 10.42 has bugs: for one in some thousand of these, its interpreter and its JIT find different matches.
      const Plain::Found expected = plain.find(text);
      if (here != expected) {
        ++differ;
        ASSERT_EQ(here, interpreted.find(text)) << pcre.pattern << " in " << text;
      }
    }
  }
  EXPECT_GT(compiled, 15'000U);
  EXPECT_GT(with, compiled * 9 / 10);
  EXPECT_GT(found, 20'000U);
  EXPECT_LT(differ, found / 1000);
  EXPECT_GT(bounded, 1000U);
  EXPECT_GT(with_literal, 100U);
}

TEST(CountedExpressionOracle, UnderstandsNearlyAllExpressionsOfRealRules) {
  const char* const given = std::getenv("PENSTOCK_CORPUS");
  RuleFiles files;
  files.rules = {(given != nullptr ? std::string(given) : PENSTOCK_SOURCE_DIR "/../shared/data") +
                 "/rules/et-open-2023/emerging-all.rules.gz"};
  if (!std::ifstream(files.rules[0])) GTEST_SKIP() << "no corpus: set PENSTOCK_CORPUS to the folder of test data";
  const auto rules = read_rules(files);
  ASSERT_TRUE(rules) << to_string(rules.error());
  unsigned all = 0, understood = 0;
  for (const Rule& rule : rules->rules) {
    for (const BufferMatches& buffer : rule.buffers) {
      for (const BufferMatch& match : buffer.matches) {
        const auto* const pcre = std::get_if<Pcre>(&match);
        if (pcre == nullptr) continue;
        ++all;
        understood += with_callouts(pcre->pattern, pcre->extended) ? 1 : 0;
        EXPECT_EQ(PcreProgram::compile(*pcre).has_value(), Plain(*pcre, Plain::How::interpreted).compiles())
            << pcre->pattern;
      }
    }
  }
  EXPECT_GT(all, 500U);
  EXPECT_GT(understood, all * 99 / 100);
}

}  // namespace
}  // namespace penstock::nids
