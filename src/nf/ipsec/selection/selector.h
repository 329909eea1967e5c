// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What SAs and policies have in common: traffic selectors and lifetimes, in the kernel's terms (xfrm_selector,
// xfrm_lifetime_cfg and xfrm_lifetime_cur).

#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>

#include "base/ip_address.h"

namespace penstock::ipsec {

using IpAddress = std::variant<Ipv4Address, Ipv6Address>;
using IpPrefix = std::variant<Ipv4Prefix, Ipv6Prefix>;

[[nodiscard]] constexpr bool is_ipv6(const IpAddress& address) noexcept { return address.index() == 1; }
[[nodiscard]] constexpr bool is_ipv6(const IpPrefix& prefix) noexcept { return prefix.index() == 1; }
[[nodiscard]] std::string to_string(const IpAddress& address);
[[nodiscard]] std::string to_string(const IpPrefix& prefix);

/// The direction of packets that a policy applies to (RFC 4301 §4.4.1). `forward` is the kernel's: packets that came in
/// through IPsec and are forwarded.
enum class Direction : std::uint8_t { in, out, forward };

/// Selects packets by their headers. All conditions must hold.
struct Selector {
  IpPrefix source;
  IpPrefix destination;       // of the same family as `source`
  std::uint8_t protocol = 0;  // 0: any
  /// Two halves of a protocol-specific value: the ports; type and code for ICMP and ICMPv6 (1, 58); the high and low
  /// half of the key for GRE (47); the type and nothing else for the mobility header (135).
  std::optional<std::uint16_t> source_port;
  std::optional<std::uint16_t> destination_port;
  std::string device;  // outgoing (out) or incoming (in) interface; empty: any

  friend bool operator==(const Selector&, const Selector&) = default;
};

/// No limit on bytes or packets.
/// "src 10.1.0.0/16 dst 10.2.0.0/16 proto 17"
[[nodiscard]] std::string to_string(const Selector& selector);

inline constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

/// An SA or policy ends at the first limit that is reached (RFC 4301 §4.4.2.1).
struct Lifetime {
  std::uint64_t bytes = kUnlimited;
  std::uint64_t packets = kUnlimited;
  std::uint64_t seconds_from_add = 0;  // 0: no limit
  std::uint64_t seconds_from_use = 0;  // after the first packet; 0: no limit

  friend bool operator==(const Lifetime&, const Lifetime&) = default;
};

/// The soft limit warns that a successor is needed; the hard limit ends the SA or policy. Traffic already carried
/// counts. `ip` prints none of this without -s: then there are no limits, nothing was carried and the times are
/// unknown.
struct Lifetimes {
  Lifetime soft;
  Lifetime hard;
  std::uint64_t bytes = 0;
  std::uint64_t packets = 0;
  std::optional<std::int64_t> added;  // seconds since 1970, printed in this machine's time zone
  std::optional<std::int64_t> first_used;

  friend bool operator==(const Lifetimes&, const Lifetimes&) = default;
};

}  // namespace penstock::ipsec
