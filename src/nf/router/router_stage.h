// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The packet side of the router: its accesses, and a worker's CPU twin.

#pragma once

#include <memory>
#include <vector>

#include "function/network_function.h"
#include "function/port_addresses.h"
#include "function/snapshot.h"
#include "nf/router/devices.h"
#include "nf/router/missing_neighbours.h"
#include "nf/router/router_tables.h"

namespace penstock::router {

/// The fields read and written, which follow from what is checked and rewritten.
[[nodiscard]] function::NfTraits router_traits(CheckRules rules, bool rewrites_destination, bool rewrites_source);

/// The stage takes the newest tables at each batch boundary. Unless `missing` is null, it is a function::HoldingStage,
/// and notes the neighbours that packets lack there. All of them must outlive it; `devices` give names for its
/// explanations. `addresses`: the router's own, by PortIndex; to hosts behind ports without any, it sends no ICMP
/// errors.
[[nodiscard]] std::unique_ptr<function::CpuStage> make_router_stage(
    function::Snapshot<RouterTables>& tables, CheckRules rules, const Devices& devices,
    const std::vector<function::PortAddresses>& addresses, MissingNeighbours* missing);

}  // namespace penstock::router
