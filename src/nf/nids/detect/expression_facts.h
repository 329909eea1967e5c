// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Facts about a rule's regular expression, found without running it: how many bytes a match spans, and bytes that each
// match contains. Nothing is known of expressions that cannot be parsed.

#pragma once

#include <cstdint>
#include <optional>

#include "nf/nids/match/pattern_matcher.h"
#include "nf/nids/rules/buffer_match.h"

namespace penstock::nids {

struct ExpressionFacts {
  /// The most bytes that a match spans, including the bytes around it that it tests. Empty: unbounded or unknown.
  std::optional<std::uint32_t> longest;
  /// Bytes that each match contains, the longest known such string. Empty: none is known, or it is too short to be of
  /// use.
  std::optional<Literal> literal;
};

[[nodiscard]] ExpressionFacts facts_of(const Pcre& pcre);

}  // namespace penstock::nids
