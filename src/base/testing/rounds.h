// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How many random cases a test tries.

#pragma once

#include <cstdint>

namespace penstock::testing {

/// All of them, or an eighth where sanitizers watch: they make a case several times as long, and look for mistakes that
/// the first cases show.
[[nodiscard]] constexpr std::uint32_t rounds(std::uint32_t all) noexcept {
#ifdef PENSTOCK_SANITIZED
  return (all + 7) / 8;
#else
  return all;
#endif
}

}  // namespace penstock::testing
