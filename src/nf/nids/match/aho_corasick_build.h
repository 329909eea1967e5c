// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <span>

#include "nf/nids/match/aho_corasick_layout.h"
#include "nf/nids/match/pattern_matcher.h"

namespace penstock::nids {

/// The most that rows may take: 256 MiB.
inline constexpr std::size_t kMostAhoCorasickBytes = std::size_t{1} << 28;

/// Where any literal matches in either case, the automaton is of texts in lower case, and the others are compared once
/// more. Fails for literals that need more than kMostAhoCorasickBytes.
[[nodiscard]] Result<AhoCorasickTables> build_aho_corasick(std::span<const Literal> literals);

}  // namespace penstock::nids
