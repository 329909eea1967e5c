// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The literals as a Hyperscan database in block mode: the fastest matcher on a CPU, and the reference for our own.

#pragma once

#include <memory>
#include <span>

#include "nf/nids/match/pattern_matcher.h"

namespace penstock::nids {

/// Fails if Hyperscan rejects a literal or does not support the processor.
[[nodiscard]] Result<std::unique_ptr<PatternMatcher>> make_hyperscan_matcher(std::span<const Literal> literals);

}  // namespace penstock::nids
