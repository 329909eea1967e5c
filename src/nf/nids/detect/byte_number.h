// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads numbers from payloads for byte_test and related options.

#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "nf/nids/rules/buffer_match.h"

namespace penstock::nids {

struct ByteNumber {
  std::uint64_t value = 0;
  std::uint32_t bytes = 0;  // how many bytes were read
};

/// Reads all of `bytes`, at most 8; no bytes give 0.
[[nodiscard]] std::optional<ByteNumber> read_binary_number(std::span<const std::uint8_t> bytes,
                                                           ByteOrder order) noexcept;

/// Like C's strtoull on at most 23 bytes: white space, a sign, `0x` if hexadecimal, then all digits. Empty if there are
/// no digits or the number does not fit into 64 bits. `automatic`: hexadecimal after 0x, octal after 0.
[[nodiscard]] std::optional<ByteNumber> read_text_number(std::span<const std::uint8_t> bytes, NumberText text) noexcept;

/// The masked value, shifted right by the mask's trailing zeros. A mask of 0 leaves the value as it is.
[[nodiscard]] std::uint64_t apply_bitmask(std::uint64_t value, std::uint32_t bitmask) noexcept;

}  // namespace penstock::nids
