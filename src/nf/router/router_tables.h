// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// All tables used to forward packets, and the edits that change them. Each snapshot holds one RouterTables; it owns its
// memory, and copies are deep.

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
#include "nf/router/table_spans.h"
#include "nf/router/table_versions.h"

namespace penstock::router {

/// A change of the tables, in the tables' own numbers. Equal tables stay equal under equal edits.
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
  std::vector<Hop> hops;           // indexed by place in the NextHopTable
  std::vector<NextHop> next_hops;  // the same places with addresses, for explanations
  NeighbourTable neighbours;
  NeighbourKeys failed;         // those that turned out to be unreachable in the last change
  bool has_neighbours = false;  // false: frames keep their destination MAC
  std::vector<EgressPort> ports;
  TableVersions versions;

  [[nodiscard]] ForwardView view() const noexcept { return {hops.data(), ports.data(), neighbours.view()}; }
  /// As devices get them. Valid until the next change.
  [[nodiscard]] TableSpans spans() const noexcept;
  /// Appends the values of removed and replaced routes to `replaced`. After an error the tables are unusable.
  [[nodiscard]] Result<void> apply(const TableEdit& edit, std::vector<std::uint32_t>& replaced);
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return v4.memory_bytes() + v6.memory_bytes() + hops.size() * sizeof(Hop) + neighbours.memory_bytes();
  }
};

/// Fills in a group's hops as packets use them: shares of the flow hash by weight, and MACs from the neighbours.
void make_hops(RouteKind kind, std::span<const NextHop> group, const NeighbourTable& neighbours, bool has_neighbours,
               std::span<Hop> hops);

}  // namespace penstock::router
