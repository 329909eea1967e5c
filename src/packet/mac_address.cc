// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "packet/mac_address.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstddef>

namespace penstock {

std::optional<MacAddress> parse_mac(std::string_view text) {
  MacAddress mac{};
  if (text.size() != 17) return std::nullopt;
  for (std::size_t i = 0; i < 6; ++i) {
    const char* const first = text.data() + i * 3;
    if (i != 5 && first[2] != ':') return std::nullopt;
    if (std::from_chars(first, first + 2, mac.bytes[i], 16).ptr != first + 2) return std::nullopt;
  }
  return mac;
}

std::string to_string(const MacAddress& mac) { return fmt::format("{:02x}", fmt::join(mac.bytes, mac.bytes + 6, ":")); }

}  // namespace penstock
