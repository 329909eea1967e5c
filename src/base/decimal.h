// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole numbers in decimal digits and nothing else; units.h reads what users may write in more ways.

#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace penstock {

/// Empty: the text is not a number, or too large for the type or for `most`.
template <std::unsigned_integral Number>
[[nodiscard]] std::optional<Number> parse_decimal(std::string_view text, Number most = static_cast<Number>(-1)) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number > most) return std::nullopt;
  return number;
}

}  // namespace penstock
