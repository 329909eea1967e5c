// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Formats routes like `ip -o route`, without the attributes that do not affect forwarding.

#pragma once

#include <span>
#include <string>
#include <string_view>

#include "nf/router/devices.h"
#include "nf/router/next_hop_table.h"

namespace penstock::router {

/// Appends "via 10.0.0.1 dev wan", "via inet6 fe80::1 dev wan" in an IPv4 route, or "dev wan".
void append_hop(std::string& text, const NextHop& hop, bool ipv4, const Devices& devices);

/// Appends "198.51.100.0/24 via 10.0.0.1 dev wan", "blackhole 192.0.2.0/24", or for several next hops "10.0.0.0/8
/// nexthop via 10.1.0.2 dev wan weight 3 nexthop via …". `prefix` is a text, which may be "default".
void append_route(std::string& text, std::string_view prefix, bool ipv4, RouteKind kind, std::span<const NextHop> hops,
                  const Devices& devices);

}  // namespace penstock::router
