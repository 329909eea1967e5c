// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a rule translates a connection to, as the kernel's nf_nat_range2. Masquerading is a source range with the
// address of the interface through which the packet leaves, and a redirect a destination range with that of the one
// through which it came.

#pragma once

#include <cstdint>

#include "base/ip_address.h"

namespace penstock::conntrack {

/// Which end of a connection is translated: SNAT in postrouting, DNAT in prerouting.
enum class NatKind : std::uint8_t { source, destination };

/// Without flags, the addresses are kept, and so is the port unless that would clash with a known connection: what
/// Linux does with connections that no rule translates (a "null binding").
struct NatRange {
  // With the values of the kernel's NF_NAT_RANGE_*.
  static constexpr std::uint8_t kAddresses = 1, kPorts = 2, kRandom = 4, kPersistent = 8, kFullyRandom = 16,
                                kOffset = 32, kNetmap = 64;

  /// With kAddresses: the first and the last one, of the connection's IP version; IPv4: {0, address}. With kNetmap, the
  /// bits in which they differ are those of the packet's address.
  Ipv6Address first_address, last_address;
  /// With kPorts: the first and the last one. Identifiers of ICMP are translated as ports are, other protocols by
  /// address only.
  std::uint16_t first_port = 0, last_port = 0;
  /// With kOffset, of a destination: the port that becomes the first one; those after it become those after that.
  std::uint16_t base_port = 0;
  std::uint8_t flags = 0;

  [[nodiscard]] constexpr bool has(std::uint8_t flag) const noexcept { return (flags & flag) != 0; }
  /// As in Linux, both flags choose any port, even if the packet's is free.
  [[nodiscard]] constexpr bool random_port() const noexcept { return has(kRandom | kFullyRandom); }

  friend bool operator==(const NatRange&, const NatRange&) = default;
};

}  // namespace penstock::conntrack
