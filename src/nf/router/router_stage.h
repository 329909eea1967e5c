// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The packet side of the router: its accesses, and the CPU twin of one worker.

#pragma once

#include <memory>

#include "function/network_function.h"
#include "function/snapshot.h"
#include "nf/router/devices.h"
#include "nf/router/router_tables.h"

namespace penstock::router {

/// What is read and written follows from what is checked and rewritten.
[[nodiscard]] function::NfTraits router_traits(CheckRules rules, bool rewrites_destination, bool rewrites_source);

/// Takes the newest tables at each batch boundary. Must outlive neither the snapshot nor the devices, by whose names it
/// explains what it does.
[[nodiscard]] std::unique_ptr<function::CpuStage> make_router_stage(function::Snapshot<RouterTables>& tables,
                                                                    CheckRules rules, const Devices& devices);

}  // namespace penstock::router
