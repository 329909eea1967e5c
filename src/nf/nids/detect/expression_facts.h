// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What can be said of a rule's regular expression without running it: how far a match reaches, and bytes that each
// match has. Where an expression is not understood nothing is said.

#pragma once

#include <cstdint>
#include <optional>

#include "nf/nids/match/pattern_matcher.h"
#include "nf/nids/rules/buffer_match.h"

namespace penstock::nids {

struct ExpressionFacts {
  /// The most bytes that a match takes, with those that it looks at around it. None: there is no bound, or none is
  /// known.
  std::optional<std::uint32_t> longest;
  /// Bytes that lie in each match, the longest of those that are known. None: of so few that it is no use, or none.
  std::optional<Literal> literal;
};

[[nodiscard]] ExpressionFacts facts_of(const Pcre& pcre);

}  // namespace penstock::nids
