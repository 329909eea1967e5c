// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The hashed filter on the CPU, for large sets of literals.

#pragma once

#include <memory>
#include <span>

#include "nf/nids/match/pattern_matcher.h"

namespace penstock::nids {

/// Fails as build_hashed_filter does.
[[nodiscard]] Result<std::unique_ptr<PatternMatcher>> make_hashed_filter_matcher(std::span<const Literal> literals);

}  // namespace penstock::nids
