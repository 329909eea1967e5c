// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <span>

#include "nf/nids/match/hashed_filter_layout.h"
#include "nf/nids/match/pattern_matcher.h"

namespace penstock::nids {

struct HashedFilterOptions {
  /// Words of 32 bits for the quads, as a power of two from 5 to 19; 0: so many that about one bit in 500 is set, but
  /// between 4 KiB and 64 KiB.
  unsigned quad_words_log2 = 0;
};

/// Fails for a literal of more than 65,535 bytes.
[[nodiscard]] Result<HashedFilterTables> build_hashed_filter(std::span<const Literal> literals,
                                                             const HashedFilterOptions& options = {});

}  // namespace penstock::nids
