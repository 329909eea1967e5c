// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What SAs and policies select packets by, and how long they last: what both have in common, in the kernel's terms
// (xfrm_selector, xfrm_lifetime_cfg and xfrm_lifetime_cur).

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

/// From whom and to whom: which way a packet goes as its policy sees it (RFC 4301 §4.4.1). `forward` is the kernel's:
/// what came in by IPsec and goes on to others.
enum class Direction : std::uint8_t { in, out, forward };

/// The packets of one flow or many, by what stands in their headers. All conditions hold together.
struct Selector {
  IpPrefix source;
  IpPrefix destination;       // of the same family
  std::uint8_t protocol = 0;  // 0: any
  /// Two halves of what the protocol has behind its IP header: ports; of ICMP and ICMPv6 (1, 58) the type and the code;
  /// of GRE (47) the high and the low half of the key; of the mobility header (135) its type and nothing.
  std::optional<std::uint16_t> source_port;
  std::optional<std::uint16_t> destination_port;
  std::string device;  // that a packet leaves by (out) or came by (in); empty: any

  friend bool operator==(const Selector&, const Selector&) = default;
};

/// No limit, of bytes and packets.
inline constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

/// When an SA or a policy is over: at the first limit that is reached (RFC 4301 §4.4.2.1).
struct Lifetime {
  std::uint64_t bytes = kUnlimited;
  std::uint64_t packets = kUnlimited;
  std::uint64_t seconds_from_add = 0;  // 0: no limit
  std::uint64_t seconds_from_use = 0;  // behind the first packet; 0: no limit

  friend bool operator==(const Lifetime&, const Lifetime&) = default;
};

/// The soft one warns that a successor is needed, the hard one ends it. What it has carried already counts. `ip` prints
/// none of it without -s: then nothing is limited, nothing was carried and the times are unknown.
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
