// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Text as bytes, for tests of code that takes bytes. Borrows from the text.

#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace penstock::testing {

[[nodiscard]] inline std::span<const std::uint8_t> bytes_of(std::string_view text) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace penstock::testing
