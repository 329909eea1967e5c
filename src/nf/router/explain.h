// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Explains to people how the router decides on a packet.

#pragma once

#include <string>

#include "function/explanation.h"
#include "nf/router/devices.h"
#include "nf/router/forward_core.h"
#include "nf/router/router_tables.h"
#include "packet/packet.h"

namespace penstock::router {

/// The route of a packet that `check` lets pass: "198.51.100.0/24 via 10.0.0.1 dev wan", or "no route to 192.0.2.1".
/// Names the next hop that the packet's flow takes.
[[nodiscard]] std::string route_of(PacketView packet, const RouterTables& tables, const Devices& devices);

/// Decides on the packet, and changes it, as a stage with these tables does. `asks_for_neighbours`: packets wait for
/// those that are missing.
[[nodiscard]] function::Explanation explain_and_send(PacketView packet, const RouterTables& tables, CheckRules rules,
                                                     const Devices& devices, bool asks_for_neighbours);

}  // namespace penstock::router
