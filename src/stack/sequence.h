// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// TCP sequence number arithmetic. The numbers wrap, so they are compared by the sign of their difference (RFC 9293
// §3.4).

#pragma once

#include <cstdint>

namespace penstock::stack {

/// How far `a` is ahead of `b`.
[[nodiscard]] constexpr std::int32_t sequence_distance(std::uint32_t a, std::uint32_t b) noexcept {
  return static_cast<std::int32_t>(a - b);
}
[[nodiscard]] constexpr bool before(std::uint32_t a, std::uint32_t b) noexcept { return sequence_distance(a, b) < 0; }
[[nodiscard]] constexpr bool after(std::uint32_t a, std::uint32_t b) noexcept { return sequence_distance(a, b) > 0; }
[[nodiscard]] constexpr bool not_after(std::uint32_t a, std::uint32_t b) noexcept { return !after(a, b); }
[[nodiscard]] constexpr bool not_before(std::uint32_t a, std::uint32_t b) noexcept { return !before(a, b); }
constexpr void advance(std::uint32_t& value, std::uint32_t to) noexcept {
  if (after(to, value)) value = to;
}

}  // namespace penstock::stack
