// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/match/pattern_matcher.h"

#include <fmt/format.h>

#include "nf/nids/match/aho_corasick_matcher.h"
#include "nf/nids/match/hashed_filter_matcher.h"
#include "nf/nids/match/hyperscan_matcher.h"

namespace penstock::nids {

Result<std::unique_ptr<PatternMatcher>> make_pattern_matcher(MatcherKind kind, std::span<const Literal> literals) {
  for (std::size_t i = 0; i < literals.size(); ++i) {
    if (literals[i].bytes.empty()) return failure(Error{{}, fmt::format("literal {} is empty", i), {}, {}});
  }
  switch (kind) {
    case MatcherKind::aho_corasick: return make_aho_corasick_matcher(literals);
    case MatcherKind::hashed_filter: return make_hashed_filter_matcher(literals);
    case MatcherKind::hyperscan: break;
  }
  return make_hyperscan_matcher(literals);
}

}  // namespace penstock::nids
