// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The literals as a Hyperscan database in block mode. The peer that ours are measured against, and the fastest of them
// on a CPU.

#pragma once

#include <memory>
#include <span>

#include "nf/nids/match/pattern_matcher.h"

namespace penstock::nids {

/// Fails where Hyperscan refuses a literal, or the processor.
[[nodiscard]] Result<std::unique_ptr<PatternMatcher>> make_hyperscan_matcher(std::span<const Literal> literals);

}  // namespace penstock::nids
