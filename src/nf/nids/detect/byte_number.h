// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers in payloads, as byte_test and its kin read them.

#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "nf/nids/rules/buffer_match.h"

namespace penstock::nids {

struct ByteNumber {
  std::uint64_t value = 0;
  std::uint32_t bytes = 0;  // that it took
};

/// All of `bytes`, at most 8; of none it is 0.
[[nodiscard]] std::optional<ByteNumber> read_binary_number(std::span<const std::uint8_t> bytes,
                                                           ByteOrder order) noexcept;

/// C's strtoull on at most 23 bytes: white space, a sign, `0x` where it is hexadecimal, and as many digits as there
/// are; none, and numbers over 64 bits, are no number. `automatic`: hexadecimal behind 0x, octal behind 0.
[[nodiscard]] std::optional<ByteNumber> read_text_number(std::span<const std::uint8_t> bytes, NumberText text) noexcept;

/// The masked value, shifted right by the mask's trailing zeros; a mask of 0 is none.
[[nodiscard]] std::uint64_t apply_bitmask(std::uint64_t value, std::uint32_t bitmask) noexcept;

}  // namespace penstock::nids
