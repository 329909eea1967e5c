// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Addresses as lookup tables store them: 128 bits, an IPv4 address in the low 32, with the family kept separately.

#pragma once

#include <variant>

#include "nf/ipsec/selection/selector.h"
#include "packet/layout.h"

namespace penstock::ipsec {

[[nodiscard]] constexpr NetworkLayer family_of(const IpAddress& address) noexcept {
  return is_ipv6(address) ? NetworkLayer::ipv6 : NetworkLayer::ipv4;
}

[[nodiscard]] constexpr Ipv6Address table_address(const IpAddress& address) noexcept {
  if (const auto* const v4 = std::get_if<Ipv4Address>(&address)) return {0, v4->bits};
  return *std::get_if<Ipv6Address>(&address);
}

}  // namespace penstock::ipsec
