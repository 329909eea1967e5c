// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which addresses and ports of a range Linux takes for a connection (nf_nat_core.c), as far as that depends on the
// connection alone, and not on others.

#pragma once

#include <cstdint>

#include "conntrack/nat_range.h"
#include "conntrack/tuple.h"

namespace penstock::conntrack {

/// A range without kNetmap that says the same for this tuple.
[[nodiscard]] NatRange resolve_netmap(const NatRange& range, const Tuple& tuple, NatKind kind) noexcept;

/// Whether the tuple's source lies in the range already, with its port if there is a range of these.
[[nodiscard]] bool is_source_in_range(const Tuple& tuple, const NatRange& range) noexcept;
/// Whether the tuple's port of this end lies in the range of ports. True for protocols without ports.
[[nodiscard]] bool is_port_in_range(const Tuple& tuple, NatKind kind, const NatRange& range) noexcept;

/// The address of the range for this tuple: by a hash of its source and, unless the range is persistent, of its
/// destination. The same as on a little-endian machine that runs Linux, and always in the range.
[[nodiscard]] Ipv6Address choose_address(const Tuple& tuple, NatKind kind, const NatRange& range) noexcept;

/// Which ports are tried, and how.
struct PortSearch {
  std::uint16_t first = 0;
  std::uint32_t count = 0;  // 0: the port cannot be changed
  bool from_random = false;
};
[[nodiscard]] PortSearch port_search(const Tuple& tuple, NatKind kind, const NatRange& range) noexcept;

/// The port of the tuple that a translation of this kind changes: of ICMP, the identifier.
[[nodiscard]] std::uint16_t& port_of(Tuple& tuple, NatKind kind) noexcept;

}  // namespace penstock::conntrack
