// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A tuple names one direction of a connection: addresses, protocol, and what the protocol tells connections apart by.
// Each connection has two, its original's and its reply's. Without NAT, one is the inverse of the other.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/ip_address.h"
#include "packet/ip.h"

namespace penstock::conntrack {

using Bytes = std::span<const std::uint8_t>;

/// ICMP: `source_port` is the identifier, `destination_port` type and code. GRE version 1: `destination_port` is the
/// call. Protocols without ports: 0.
struct Tuple {
  Ipv6Address source, destination;  // IPv4: {0, address}
  std::uint16_t source_port = 0, destination_port = 0;
  std::uint8_t protocol = 0;
  std::uint8_t ip_version = 0;  // 4 or 6

  friend bool operator==(const Tuple&, const Tuple&) = default;
};

[[nodiscard]] constexpr bool is_icmp(const Tuple& tuple) noexcept {
  return tuple.protocol == ip_protocol::kIcmp || tuple.protocol == ip_protocol::kIcmpv6;
}

/// Fills in what `protocol` tells connections apart by. `transport` is what there is of the transport header and what
/// follows. False if that is too little, or if no connection can be of this kind.
[[nodiscard]] bool read_ports(Bytes transport, std::uint8_t protocol, Tuple& tuple) noexcept;

/// Whether packets with `b` answer those with `a`: inverse_of(a) == b.
[[nodiscard]] bool are_inverse(const Tuple& a, const Tuple& b) noexcept;

/// The tuple of packets in the other direction. Nothing for ICMP that is neither request nor reply.
[[nodiscard]] std::optional<Tuple> inverse_of(const Tuple& tuple) noexcept;

/// The tuple of the packet that an ICMP error quotes. `quoted` begins with the quoted IP header. Nothing if it does not
/// reach to the ports, or if the quoted packet is not a first fragment.
[[nodiscard]] std::optional<Tuple> read_quoted(Bytes quoted, std::uint8_t ip_version) noexcept;

/// The same for a tuple and its inverse.
[[nodiscard]] std::uint32_t hash_of(const Tuple& tuple, std::uint64_t seed) noexcept;

}  // namespace penstock::conntrack
