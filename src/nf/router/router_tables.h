// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// All tables that packets are forwarded by, and the edits by which they change. One snapshot holds one of these; it
// owns its memory, and copies are deep.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "nf/router/fib.h"
#include "nf/router/forward_core.h"
#include "nf/router/neighbour_table.h"
#include "nf/router/next_hop_table.h"
#include "nf/router/route_table.h"
#include "nf/router/table_versions.h"

namespace penstock::router {

/// A change of the tables in their own numbers. Equal tables stay equal under equal edits.
struct TableEdit {
  struct Place {
    std::uint32_t index;
    Hop hop;
    NextHop next;
  };
  std::vector<Place> hops;
  std::vector<Route4> insert4;
  std::vector<Route6> insert6;
  std::vector<Ipv4Prefix> erase4;
  std::vector<Ipv6Prefix> erase6;
};

struct RouterTables {
  Fib4 v4;
  Fib6 v6;
  std::vector<Hop> hops;           // by the places of the NextHopTable
  std::vector<NextHop> next_hops;  // the same places by name, to explain them
  NeighbourTable neighbours;
  bool has_neighbours = false;  // without, frames keep their destination MAC
  std::vector<EgressPort> ports;
  TableVersions versions;

  [[nodiscard]] ForwardView view() const noexcept { return {hops.data(), ports.data(), neighbours.view()}; }
  /// `replaced` takes the values of the routes that are gone. After an error the tables are of no use.
  [[nodiscard]] Result<void> apply(const TableEdit& edit, std::vector<std::uint32_t>& replaced);
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return v4.memory_bytes() + v6.memory_bytes() + hops.size() * sizeof(Hop) + neighbours.memory_bytes();
  }
};

/// A group's hops as packets see them: shares of the flow hashes by weight, and MACs by the neighbours.
void make_hops(RouteKind kind, std::span<const NextHop> group, const NeighbourTable& neighbours, bool has_neighbours,
               std::span<Hop> hops);

}  // namespace penstock::router
