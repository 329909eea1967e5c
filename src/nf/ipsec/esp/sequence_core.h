// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Extended sequence numbers (RFC 4303 §2.2.1): packets carry only the low 32 of 64 bits. For host and device.

#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace penstock::ipsec {

/// Infers the full number whose low half is `low`: the one that is not below the window of `window` packets that ends
/// at `top`, and less than 2^32 above its lower edge (RFC 4303 appendix A2.2). Without a window, the one nearest to
/// `top`. Numbers below 0 do not exist.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint64_t infer_sequence(std::uint64_t top, std::uint32_t window,
                                                                          std::uint32_t low) noexcept {
  const std::uint64_t below = window == 0 ? std::uint64_t{1} << 31 : window - 1U;
  const std::uint64_t bottom = top < below ? 0 : top - below;
  return bottom + static_cast<std::uint32_t>(low - static_cast<std::uint32_t>(bottom));
}

}  // namespace penstock::ipsec
