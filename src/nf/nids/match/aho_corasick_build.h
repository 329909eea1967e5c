// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <span>

#include "nf/nids/match/aho_corasick_layout.h"
#include "nf/nids/match/pattern_matcher.h"

namespace penstock::nids {

/// The limit for the size of the rows: 256 MiB.
inline constexpr std::size_t kMostAhoCorasickBytes = std::size_t{1} << 28;

/// If any literal ignores case, the automaton works on lower-case text, and case-sensitive literals are compared again
/// where they end. Fails if the literals need more than kMostAhoCorasickBytes.
[[nodiscard]] Result<AhoCorasickTables> build_aho_corasick(std::span<const Literal> literals);

}  // namespace penstock::nids
