// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the tables of two routers, for the description of a reload.

#pragma once

#include <string>
#include <vector>

#include "nf/router/forward_core.h"
#include "nf/router/next_hop_table.h"
#include "nf/router/router_tables.h"
#include "nf/router/table_source.h"

namespace penstock::router {

/// A router's tables, and the next hops that the values of its routes refer to. Borrows them.
struct ComparedTables {
  const RouterTables& tables;
  const NextHopTable& next_hops;
  CheckRules rules;
  std::vector<EgressPort> ports;  // with the MACs that the user has given
};

/// "12 IPv4 routes added, 3 removed, 1 changed, 1 neighbour added"; empty if packets are forwarded alike. A route has
/// changed if its type or its next hops have. What both have from the kernel is the same, and is not compared. The time
/// is linear in the number of routes.
[[nodiscard]] std::string table_changes(const ComparedTables& before, const ComparedTables& now,
                                        const FromKernel& from_kernel);

}  // namespace penstock::router
