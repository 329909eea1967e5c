// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the output of `ip neigh` and `ip -6 neigh`, as text or, with -j, as JSON (ip_json.h):
//
//     ADDRESS dev DEVICE [lladdr MAC] [router] [proxy] [extern_learn] … STATE
//
// Skips neighbours without a MAC (FAILED, INCOMPLETE), those for which the kernel answers itself (proxy), and
// multicast, broadcast and loopback addresses, which the kernel lists with the state NOARP and a MAC that is not a
// host's. In any other state the MAC must be a unicast address (RFC 1812 §3.3.2), and each address and device has only
// one. Empty lines and lines that begin with # are skipped.

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "nf/router/devices.h"
#include "nf/router/neighbour_table.h"
#include "nf/router/route_table.h"
#include "packet/mac_address.h"

namespace penstock::router {

using Neighbours = std::vector<Neighbour>;  // in file order

constexpr bool is_group_address(const MacAddress& mac) noexcept { return (mac.bytes[0] & 1) != 0; }

/// Reads whole files with at most `most` lines in all. Neighbours on unknown devices are reported as unsupported.
[[nodiscard]] Result<Read<Neighbours>> read_neighbours(std::span<const std::string> paths, Devices& devices,
                                                       std::size_t most = kMostRoutes);
/// Reads a text.
[[nodiscard]] Result<Read<Neighbours>> parse_neighbours(std::string_view text, const std::string& file,
                                                        Devices& devices, std::size_t most = kMostRoutes);

}  // namespace penstock::router
