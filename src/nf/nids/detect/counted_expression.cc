// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/counted_expression.h"

#include <algorithm>
#include <limits>

#include "nf/nids/detect/expression_tokens.h"

namespace penstock::nids {

namespace {

constexpr std::uint32_t kManyTimes = 16;  // repeats of an item without a callout
constexpr std::string_view kCallout = "(?C)";
constexpr std::string_view kCalloutBeforeRepeat = "(?C1)";

using Token = ExpressionToken;

class Counter {
 public:
  void add(const Token& token) {
    const bool is_counted = lookbehinds_ == 0;  // a lookbehind has a fixed length
    switch (token.kind) {
      case Token::Kind::options: break;
      case Token::Kind::open:
        if (token.group == Token::Group::behind) ++lookbehinds_;
        break;
      case Token::Kind::bar:
        if (depth_ > 0 && is_counted && token.group == Token::Group::plain) append(kCallout);
        break;
      case Token::Kind::close:
        if (token.group == Token::Group::behind) --lookbehinds_;
        if (is_counted && token.group == Token::Group::plain) append(kCallout);
        break;
      case Token::Kind::item:
        if (is_counted) return add_item(token);
        break;
    }
    if (token.kind == Token::Kind::open) ++depth_;
    if (token.kind == Token::Kind::close) --depth_;
    append(token.text);
    append(token.quantifier.text);
    if (lookbehinds_ == 0 && token.quantifier.leaves_choice()) append(kCallout);
  }

  [[nodiscard]] CountedExpression take() && { return std::move(counted_); }

 private:
  void append(std::string_view text) { counted_.pattern += text; }

  void append_callout_before_repeat(std::uint32_t bytes) {
    counted_.longest_repeat = std::max(counted_.longest_repeat, bytes);
    append(kCalloutBeforeRepeat);
  }

  void add_item(const Token& token) {
    const ExpressionQuantifier& repeated = token.quantifier;
    if (token.refers) append_callout_before_repeat(std::numeric_limits<std::uint16_t>::max());
    append(token.text);
    if (!token.refers && repeated.least > kManyTimes) {
      // Matches rarely get so far that the rest needs a callout.
      append("{" + std::to_string(kManyTimes) + "}");
      append_callout_before_repeat(repeated.least - kManyTimes);
      append(token.text);
      append(rest_of(repeated));
    } else {
      append(repeated.text);
    }
    if (repeated.leaves_choice()) append(kCallout);
  }

  /// The quantifier for the repeats after the first kManyTimes.
  [[nodiscard]] static std::string rest_of(const ExpressionQuantifier& repeated) {
    std::string rest = "{" + std::to_string(repeated.least - kManyTimes);
    if (repeated.leaves_choice()) rest += ",";
    if (repeated.leaves_choice() && repeated.most != ExpressionQuantifier::kAnyNumber) {
      rest += std::to_string(repeated.most - kManyTimes);
    }
    return rest.append("}").append(repeated.how);
  }

  CountedExpression counted_;
  unsigned depth_ = 0, lookbehinds_ = 0;  // open groups and lookbehinds
};

}  // namespace

std::optional<CountedExpression> with_callouts(std::string_view pattern, bool extended) {
  ExpressionTokens tokens(pattern, extended);
  Counter counter;
  for (Token token; tokens.next(token);) counter.add(token);
  if (!tokens.understood()) return std::nullopt;
  return std::move(counter).take();
}

}  // namespace penstock::nids
