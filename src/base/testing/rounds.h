// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How many cases a test tries.

#pragma once

#include <cstdint>

namespace penstock::testing {

/// The step from a case to the next that is tried: 1, or 15 where sanitizers watch. They make a case several times as
/// long, and look for mistakes that few cases show. It shares no factor with the sizes of blocks and words.
[[nodiscard]] constexpr std::uint32_t stride() noexcept {
#ifdef PENSTOCK_SANITIZED
  return 15;
#else
  return 1;
#endif
}

/// How many of `all` random cases are tried: as many as with `stride`.
[[nodiscard]] constexpr std::uint32_t rounds(std::uint32_t all) noexcept { return (all + stride() - 1) / stride(); }

}  // namespace penstock::testing
