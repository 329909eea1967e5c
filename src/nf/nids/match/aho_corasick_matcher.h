// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The Aho-Corasick automaton on the CPU, for small sets of literals.

#pragma once

#include <memory>
#include <span>

#include "nf/nids/match/pattern_matcher.h"

namespace penstock::nids {

/// Fails as build_aho_corasick does.
[[nodiscard]] Result<std::unique_ptr<PatternMatcher>> make_aho_corasick_matcher(std::span<const Literal> literals);

}  // namespace penstock::nids
