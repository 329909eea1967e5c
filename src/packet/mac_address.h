// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Link-layer addresses as texts and as numbers.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "packet/ethernet.h"

namespace penstock {

/// "02:00:00:00:00:01"
[[nodiscard]] std::optional<MacAddress> parse_mac(std::string_view text);
[[nodiscard]] std::string to_string(const MacAddress& mac);

/// Of 48 bits, the first byte highest.
[[nodiscard]] constexpr std::uint64_t to_number(const MacAddress& mac) noexcept {
  std::uint64_t number = 0;
  for (const std::uint8_t byte : mac.bytes) number = number << 8 | byte;
  return number;
}

}  // namespace penstock
