// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The types of ICMP (RFC 792, 950) and ICMPv6 (RFC 4443, 4620, 4861, 2710, 3810, 4286), as Linux's connection tracking
// divides them.

#pragma once

#include <cstdint>
#include <optional>

namespace penstock::conntrack {

enum class IcmpKind : std::uint8_t {
  request,    // may begin a connection
  reply,      // only in a connection
  error,      // belongs to the connection of the packet that it quotes
  redirect,   // of ICMPv6: the same, but the quotation is in an option
  untracked,  // neighbour discovery, multicast listeners and routers: not tracked at all
  other,      // invalid
};

/// `protocol` is ICMP's or ICMPv6's.
[[nodiscard]] IcmpKind icmp_kind(std::uint8_t protocol, std::uint8_t type) noexcept;

/// The type that replies to this one, or that this one replies to.
[[nodiscard]] std::optional<std::uint8_t> icmp_counterpart(std::uint8_t protocol, std::uint8_t type) noexcept;

}  // namespace penstock::conntrack
