// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/expression_facts.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "nf/nids/detect/expression_tokens.h"

namespace penstock::nids {

namespace {

using Token = ExpressionToken;

constexpr std::uint64_t kMostBytes = std::numeric_limits<std::uint16_t>::max();  // longer matches count as unbounded
constexpr std::size_t kLeastLiteral = 3;                                         // shorter literals occur in most
                                                                                 // packets

/// Computes the maximum length over all alternatives. An assertion tests one adjacent byte.
class Length {
 public:
  void add(const Token& token) {
    switch (token.kind) {
      case Token::Kind::options: break;
      case Token::Kind::open: groups_.push_back({}); break;
      case Token::Kind::bar: groups_.back().end_alternative(); break;
      case Token::Kind::close: {
        const std::uint64_t inside = groups_.back().longest();
        groups_.pop_back();
        add(inside, token.quantifier);
        break;
      }
      case Token::Kind::item: add(token.refers ? kNoBound : 1, token.quantifier); break;
    }
  }

  [[nodiscard]] std::optional<std::uint32_t> longest() const {
    const std::uint64_t bytes = groups_.front().longest();
    if (bytes > kMostBytes) return std::nullopt;
    return static_cast<std::uint32_t>(bytes);
  }

 private:
  static constexpr std::uint64_t kNoBound = kMostBytes + 1;

  struct Group {
    std::uint64_t others = 0;  // the longest previous alternative
    std::uint64_t current = 0;
    void end_alternative() { others = std::max(others, std::exchange(current, 0)); }
    [[nodiscard]] std::uint64_t longest() const { return std::max(others, current); }
  };

  void add(std::uint64_t bytes, const ExpressionQuantifier& times) {
    const std::uint64_t all = bytes == 0 ? 0 : bytes * times.most;  // each has at most 32 bits
    groups_.back().current = std::min(kNoBound, groups_.back().current + all);
  }

  std::vector<Group> groups_{1};
};

/// The longest run of bytes outside all groups. In an expression with alternatives, no byte occurs in every match.
class LongestRun {
 public:
  void add(const Token& token) {
    if (token.sets_options) any_case_ = true;
    if (token.kind == Token::Kind::bar && depth_ == 0) has_alternatives_ = true;
    if (token.kind == Token::Kind::open) ++depth_;
    if (token.kind == Token::Kind::close) --depth_;
    const bool is_outside = depth_ == 0 && token.kind == Token::Kind::item;
    if (is_outside && token.is_empty) return;
    if (!is_outside || token.literal < 0 || token.quantifier.least == 0) return end_run();
    run_.push_back(static_cast<std::uint8_t>(token.literal));
    if (token.quantifier.most != 1) end_run();
  }

  [[nodiscard]] std::optional<Literal> take(bool nocase) && {
    end_run();
    if (has_alternatives_ || longest_.size() < kLeastLiteral) return std::nullopt;
    return Literal{std::move(longest_), nocase || any_case_};
  }

 private:
  void end_run() {
    if (run_.size() > longest_.size()) longest_ = run_;
    run_.clear();
  }

  std::vector<std::uint8_t> run_, longest_;
  unsigned depth_ = 0;
  bool has_alternatives_ = false, any_case_ = false;
};

}  // namespace

ExpressionFacts facts_of(const Pcre& pcre) {
  ExpressionTokens tokens(pcre.pattern, pcre.extended);
  Length length;
  LongestRun run;
  for (Token token; tokens.next(token);) {
    length.add(token);
    run.add(token);
  }
  ExpressionFacts facts;
  // Ignored white space would be taken for bytes of the literal.
  if (!tokens.understood() || tokens.is_extended()) return facts;
  facts.longest = length.longest();
  facts.literal = std::move(run).take(pcre.caseless);
  return facts;
}

}  // namespace penstock::nids
