// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How many of its cases a test runs.

#pragma once

#include <cstdint>

namespace penstock::testing {

/// A test runs every `stride()`-th case: all of them, or every 15th with sanitizers, which slow down each case several
/// times, and whose errors do not need every case to show. 15 is coprime to the sizes of blocks and words.
[[nodiscard]] constexpr std::uint32_t stride() noexcept {
#ifdef PENSTOCK_SANITIZED
  return 15;
#else
  return 1;
#endif
}

/// How many of `all` random cases to run: the same fraction as with `stride`.
[[nodiscard]] constexpr std::uint32_t rounds(std::uint32_t all) noexcept { return (all + stride() - 1) / stride(); }

}  // namespace penstock::testing
