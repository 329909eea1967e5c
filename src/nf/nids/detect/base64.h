// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Decodes Base64 as the rule option base64_decode does.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::nids {

[[nodiscard]] constexpr std::size_t base64_capacity(std::size_t encoded_bytes) noexcept {
  return (encoded_bytes + 3) / 4 * 3;
}

/// RFC 4648 §4, leniently: decoding ends at the first byte that is neither in the alphabet nor `=`, missing padding is
/// added, and data after a padded block is decoded too. Returns the number of bytes written; `decoded` must have room
/// for base64_capacity(encoded.size()).
[[nodiscard]] std::size_t decode_base64(std::span<const std::uint8_t> encoded,
                                        std::span<std::uint8_t> decoded) noexcept;

}  // namespace penstock::nids
