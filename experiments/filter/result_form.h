// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What comes back for each packet, by its bits:
//
//   1   the verdict: set if a rule decided the packet, which drops it; bit i % 32 of word i / 32
//   8   the verdict in a byte
//   16  the number of the rule that decided it, from 1; 0: none, and the packet passes. The paper's u_int16_t
//   32  likewise

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"

namespace penstock::experiments {

[[nodiscard]] constexpr std::size_t result_bytes(std::size_t packets, unsigned bits) noexcept {
  return (packets * bits + 7) / 8;
}

/// Writes a wrong result for every kCheckedStep-th packet. `expected` has the numbers of their rules.
void spoil_results(std::span<std::byte> results, unsigned bits, std::span<const std::uint32_t> expected) noexcept;

/// Compares the result of every kCheckedStep-th packet. `whose`: "the GPU's", for the error.
[[nodiscard]] Result<void> check_results(std::span<const std::byte> results, unsigned bits,
                                         std::span<const std::uint32_t> expected, const char* whose);

}  // namespace penstock::experiments
