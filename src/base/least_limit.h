// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>

namespace penstock {

/// Of two limits, 0 being none.
template <typename Number>
[[nodiscard]] constexpr Number least_limit(Number one, Number other) noexcept {
  if (one == 0 || other == 0) return std::max(one, other);
  return std::min(one, other);
}

}  // namespace penstock
