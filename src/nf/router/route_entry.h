// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The 32-bit entry that every lookup table of the router is made of. A lookup follows children until it meets a route.
//
//      31 30          24 23                              0
//     +--+--------------+---------------------------------+
//     | 0|    length    |  value (all ones: no route)     |  a route: its value and its prefix's length
//     +--+--------------+---------------------------------+
//     | 1|                 node                           |  a child: longer prefixes begin here
//     +--+------------------------------------------------+

#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace penstock::router {

/// What a lookup returns where no prefix contains the address.
constexpr std::uint32_t kNoRoute = 0xff'ffff;
/// Values are the caller's own numbers: an index of a next hop, of a route …
constexpr std::uint32_t kMaxValue = kNoRoute - 1;

/// A value with the length of the prefix that it came from: what distinguishes a route from those nested in it, so that
/// an update finds its own entries and leaves the longer ones. IPv6 leaves hold lengths to 128, which need bit 31; they
/// lie apart from children, so nothing is ambiguous.
PENSTOCK_HOST_DEVICE constexpr std::uint32_t route_entry(unsigned length, std::uint32_t value) noexcept {
  return static_cast<std::uint32_t>(length) << 24 | value;
}
constexpr std::uint32_t kNoRouteEntry = kNoRoute;  // of length 0, so that a default route replaces it
PENSTOCK_HOST_DEVICE constexpr std::uint32_t entry_value(std::uint32_t entry) noexcept { return entry & kNoRoute; }
PENSTOCK_HOST_DEVICE constexpr unsigned entry_length(std::uint32_t entry) noexcept { return entry >> 24; }

constexpr std::uint32_t kChildFlag = std::uint32_t{1} << 31;
PENSTOCK_HOST_DEVICE constexpr bool is_child(std::uint32_t entry) noexcept { return (entry & kChildFlag) != 0; }
PENSTOCK_HOST_DEVICE constexpr std::uint32_t child_node(std::uint32_t entry) noexcept { return entry & ~kChildFlag; }

}  // namespace penstock::router
