// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The 32-bit entry of all the router's lookup tables. A lookup follows children until it reaches a route.
//
//      31          24 23                              0
//     +--------------+---------------------------------+
//     | length 0-128 |  value (all ones: no route)     |  a route: its value and its prefix's length
//     +--------------+---------------------------------+
//     |             0x81000000 + node                  |  a child: longer prefixes begin here
//     +------------------------------------------------+

#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace penstock::router {

/// The result of a lookup if no prefix contains the address.
inline constexpr std::uint32_t kNoRoute = 0xff'ffff;
/// Values are the caller's own numbers: the index of a next hop, of a route …
inline constexpr std::uint32_t kMaxValue = kNoRoute - 1;

/// A value with the length of its prefix. The length distinguishes a route from those nested in it, so that an update
/// finds its own entries and leaves those of longer prefixes.
PENSTOCK_HOST_DEVICE constexpr std::uint32_t route_entry(unsigned length, std::uint32_t value) noexcept {
  return static_cast<std::uint32_t>(length) << 24 | value;
}
inline constexpr std::uint32_t kNoRouteEntry = kNoRoute;  // of length 0, so that a default route replaces it
PENSTOCK_HOST_DEVICE constexpr std::uint32_t entry_value(std::uint32_t entry) noexcept { return entry & kNoRoute; }
PENSTOCK_HOST_DEVICE constexpr unsigned entry_length(std::uint32_t entry) noexcept { return entry >> 24; }

inline constexpr std::uint32_t kFirstChild = std::uint32_t{129} << 24;
PENSTOCK_HOST_DEVICE constexpr std::uint32_t child_entry(std::uint32_t node) noexcept { return kFirstChild + node; }
PENSTOCK_HOST_DEVICE constexpr bool is_child(std::uint32_t entry) noexcept { return entry >= kFirstChild; }
PENSTOCK_HOST_DEVICE constexpr std::uint32_t child_node(std::uint32_t entry) noexcept { return entry - kFirstChild; }

}  // namespace penstock::router
