// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The host's addresses at the ports of a chain, as functions take them in a parameter.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ip_address.h"
#include "base/parameter.h"
#include "function/network_function.h"

namespace penstock::function {

struct PortAddresses {
  std::optional<Ipv4Address> ipv4;
  std::optional<Ipv6Address> ipv6;
  // The lengths of their subnets' prefixes; empty: unknown.
  std::optional<std::uint8_t> ipv4_bits{}, ipv6_bits{};
  friend bool operator==(const PortAddresses&, const PortAddresses&) = default;

  [[nodiscard]] bool any() const noexcept { return ipv4.has_value() || ipv6.has_value(); }
  /// An IPv4 address is in the low bits. Empty if there is none of this family.
  [[nodiscard]] std::optional<Ipv6Address> of(NetworkLayer family) const noexcept {
    if (family != NetworkLayer::ipv4) return ipv6;
    return ipv4 ? std::optional(Ipv6Address{0, ipv4->bits}) : std::nullopt;
  }
  /// Of the IPv4 subnet, if it is known and has one: not if it has two addresses or fewer (RFC 3021).
  [[nodiscard]] std::optional<Ipv4Address> broadcast() const noexcept;
  /// The anycast address of all routers in the IPv6 subnet (RFC 4291 §2.6.1), likewise (RFC 6164).
  [[nodiscard]] std::optional<Ipv6Address> subnet_anycast() const noexcept;
};

/// One address, with or without the length of its prefix: 203.0.113.5/24. Without any address: it is none.
struct ParsedAddress {
  PortAddresses address;
  bool has_wrong_length = false;
};
[[nodiscard]] ParsedAddress parse_port_address(std::string_view text) noexcept;

/// Reads a parameter of pairs: {wan: 203.0.113.5/24 2001:db8::5}. By PortIndex; without the parameter, there are none.
[[nodiscard]] Result<std::vector<PortAddresses>> read_port_addresses(const Parameters& parameters,
                                                                     std::string_view name, const NfContext& context);

}  // namespace penstock::function
