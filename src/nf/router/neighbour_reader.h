// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads what `ip neigh` and `ip -6 neigh` print, as text or, with -j, as JSON (ip_json.h):
//
//     ADDRESS dev DEVICE [lladdr MAC] [router] [proxy] [extern_learn] … STATE
//
// Neighbours that the kernel has no MAC of (FAILED, INCOMPLETE) are no entries, and neither are those that it answers
// for itself (proxy), nor groups, broadcast and loopback, which it has with the state NOARP and a MAC of no host. In
// any other state a MAC is a host's (RFC 1812 §3.3.2), and one for each address and device. Empty lines and lines that
// begin with # are left out.

#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "nf/router/devices.h"
#include "nf/router/neighbour_table.h"
#include "nf/router/route_table.h"

namespace penstock::router {

using Neighbours = std::vector<Neighbour>;  // in the file's order

/// "02:00:00:00:00:01"
[[nodiscard]] std::optional<MacAddress> parse_mac(std::string_view text);
[[nodiscard]] std::string to_string(const MacAddress& mac);
constexpr bool is_group_address(const MacAddress& mac) noexcept { return (mac.bytes[0] & 1) != 0; }

/// Reads whole files, of `most` lines in all. Neighbours on devices that are not known are reported as unsupported.
[[nodiscard]] Result<Read<Neighbours>> read_neighbours(std::span<const std::string> paths, Devices& devices,
                                                       std::size_t most = kMostRoutes);
/// Reads a text.
[[nodiscard]] Result<Read<Neighbours>> parse_neighbours(std::string_view text, const std::string& file,
                                                        Devices& devices, std::size_t most = kMostRoutes);

}  // namespace penstock::router
