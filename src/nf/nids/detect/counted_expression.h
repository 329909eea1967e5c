// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Adds callouts to a regular expression at the places that PCRE2 returns to while it searches, so that its work can be
// counted: after each quantifier that leaves a choice, at the end of each alternative in a group, and within an item
// that may repeat many times. Between two callouts, the work is bounded by the length of the expression and the
// distance moved in the subject. Callouts do not change what an expression matches.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::nids {

struct CountedExpression {
  std::string pattern;
  /// The most bytes that are matched between a callout with number kBeforeRepeat and the next.
  std::uint32_t longest_repeat = 0;

  static constexpr std::uint32_t kBeforeRepeat = 1;
};

/// Empty if the expression has a construct that is not handled here (conditions, recursion, verbs, comments, \Q). PCRE2
/// can put a callout before each item of such an expression instead, which is slower. `extended`: white space and # in
/// the pattern are ignored (PCRE2_EXTENDED).
[[nodiscard]] std::optional<CountedExpression> with_callouts(std::string_view pattern, bool extended);

}  // namespace penstock::nids
