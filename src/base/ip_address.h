// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Addresses and prefixes in the form in which tables use them as keys: an IPv4 address is one host-order integer, an
// IPv6 address two host-order 64-bit words, the high one first. So comparing the integers compares the addresses.

#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/host_device.h"

namespace penstock {

struct Ipv4Address {
  std::uint32_t bits = 0;
  friend constexpr auto operator<=>(const Ipv4Address&, const Ipv4Address&) = default;
};

struct Ipv6Address {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend constexpr auto operator<=>(const Ipv6Address&, const Ipv6Address&) = default;
};

/// The `length` highest bits are the network part. The host bits are 0.
struct Ipv4Prefix {
  Ipv4Address address;
  std::uint8_t length = 0;  // 0..32
  friend constexpr auto operator<=>(const Ipv4Prefix&, const Ipv4Prefix&) = default;
};

struct Ipv6Prefix {
  Ipv6Address address;
  std::uint8_t length = 0;  // 0..128
  friend constexpr auto operator<=>(const Ipv6Prefix&, const Ipv6Prefix&) = default;
};

PENSTOCK_HOST_DEVICE constexpr std::uint32_t ipv4_mask(unsigned length) noexcept {
  return length == 0 ? 0 : ~std::uint32_t{0} << (32 - length);
}

PENSTOCK_HOST_DEVICE constexpr Ipv6Address ipv6_mask(unsigned length) noexcept {
  constexpr std::uint64_t kOnes = ~std::uint64_t{0};
  if (length == 0) return {0, 0};
  if (length <= 64) return {kOnes << (64 - length), 0};
  return {kOnes, kOnes << (128 - length)};
}

constexpr bool contains(const Ipv4Prefix& prefix, Ipv4Address address) noexcept {
  return ((prefix.address.bits ^ address.bits) & ipv4_mask(prefix.length)) == 0;
}

constexpr bool contains(const Ipv6Prefix& prefix, Ipv6Address address) noexcept {
  const Ipv6Address mask = ipv6_mask(prefix.length);
  return ((prefix.address.high ^ address.high) & mask.high) == 0 &&
         ((prefix.address.low ^ address.low) & mask.low) == 0;
}

/// "192.0.2.1", without leading zeros or surrounding spaces.
[[nodiscard]] std::optional<Ipv4Address> parse_ipv4(std::string_view text);
/// "2001:db8::1", without a zone.
[[nodiscard]] std::optional<Ipv6Address> parse_ipv6(std::string_view text);
/// "192.0.2.0/24", or a bare address (/32). Host bits must not be set; `ip route add` refuses them too.
[[nodiscard]] std::optional<Ipv4Prefix> parse_ipv4_prefix(std::string_view text);
[[nodiscard]] std::optional<Ipv6Prefix> parse_ipv6_prefix(std::string_view text);

[[nodiscard]] std::string to_string(Ipv4Address address);
[[nodiscard]] std::string to_string(Ipv6Address address);  // RFC 5952
[[nodiscard]] std::string to_string(const Ipv4Prefix& prefix);
[[nodiscard]] std::string to_string(const Ipv6Prefix& prefix);

}  // namespace penstock
