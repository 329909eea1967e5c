// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether an address can be that of one host on a network: no group, no loopback, and not unspecified. Whether it is
// known on one link only.

#pragma once

#include "base/ip_address.h"

namespace penstock {

/// Not of 0.0.0.0/8, 127.0.0.0/8 or 224.0.0.0/3.
[[nodiscard]] constexpr bool is_of_a_host(Ipv4Address address) noexcept {
  const std::uint32_t first = address.bits >> 24;
  return first != 0 && first != 127 && first < 224;
}

/// Not ::, ::1 or of ff00::/8.
[[nodiscard]] constexpr bool is_of_a_host(const Ipv6Address& address) noexcept {
  return address.high >> 56 != 0xff && (address.high != 0 || address.low > 1);
}

/// fe80::/10 (RFC 4291 §2.5.6)
[[nodiscard]] constexpr bool is_link_local(const Ipv6Address& address) noexcept { return address.high >> 54 == 0x3fa; }

}  // namespace penstock
