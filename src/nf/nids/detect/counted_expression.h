// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A regular expression with callouts at the places that PCRE2's search for a match comes back to, so that its work can
// be counted: after each quantifier that leaves a choice, at the end of each alternative in a group, and within an
// item that is repeated many times. Between two callouts it does no more than the expression is long, and what it moves
// in the subject. Callouts change nothing of what an expression matches.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::nids {

struct CountedExpression {
  std::string pattern;
  /// The most bytes that are taken between a callout of number kBeforeRepeat and the next.
  std::uint32_t longest_repeat = 0;

  static constexpr std::uint32_t kBeforeRepeat = 1;
};

/// None: the expression has something that is not understood here (conditions, recursion, verbs, comments, \Q); PCRE2
/// can put a callout before each of its items instead, which is slower. `extended`: white space and # have no meaning
/// of their own in the expression.
[[nodiscard]] std::optional<CountedExpression> with_callouts(std::string_view pattern, bool extended);

}  // namespace penstock::nids
