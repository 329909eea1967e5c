// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <span>

#include "nf/nids/match/hashed_filter_layout.h"
#include "nf/nids/match/pattern_matcher.h"

namespace penstock::nids {

struct HashedFilterOptions {
  /// The binary logarithm of the number of 32-bit words for the quads, 5 to 19. 0: chosen so that about one bit in 500
  /// is set, but within 4 KiB to 64 KiB.
  unsigned quad_words_log2 = 0;
};

/// Fails if a literal is longer than 65,535 bytes.
[[nodiscard]] Result<HashedFilterTables> build_hashed_filter(std::span<const Literal> literals,
                                                             const HashedFilterOptions& options = {});

}  // namespace penstock::nids
