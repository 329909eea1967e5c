// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/match/pattern_matcher.h"

#include "nf/nids/match/vectorscan_matcher.h"

namespace penstock::nids {

Result<std::unique_ptr<PatternMatcher>> make_pattern_matcher(MatcherKind kind, std::span<const Literal> literals) {
  for (std::size_t i = 0; i < literals.size(); ++i) {
    if (literals[i].bytes.empty()) return failure(Error{{}, "an empty literal", "number " + std::to_string(i), {}});
  }
  switch (kind) {
    case MatcherKind::vectorscan: return make_vectorscan_matcher(literals);
    case MatcherKind::aho_corasick:
    case MatcherKind::hashed_filter: break;
  }
  return failure(Error{{}, "no such matcher in this build", {}, "vectorscan"});
}

}  // namespace penstock::nids
