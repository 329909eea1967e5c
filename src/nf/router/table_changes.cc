// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/table_changes.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "function/changes.h"

namespace penstock::router {

namespace {

using Counts = function::Changes::Counts;

/// By group of `before`: the same group of `now`, or kNoRoute. Groups are unique, so routes can be compared by them.
std::vector<std::uint32_t> same_groups(const NextHopTable& before, const NextHopTable& now) {
  std::vector<std::uint32_t> same(before.places(), kNoRoute);
  for (std::uint32_t place = 0; place < same.size(); ++place) {
    if (!before.is_group(place)) continue;
    if (const auto group = now.find(before.kind(place), before.hops(place))) same[place] = *group;
  }
  return same;
}

template <typename Fib>
Counts compare_routes(const Fib& before, const Fib& now, const std::vector<std::uint32_t>& same) {
  Counts counts;
  std::size_t kept = 0;
  now.for_each([&](const auto& prefix, std::uint32_t value) {
    const auto known = before.value(prefix);
    if (!known) return;
    ++kept;
    if (same[*known] != value) ++counts.changed;
  });
  counts.added = now.size() - kept;
  counts.removed = before.size() - kept;
  return counts;
}

Counts compare_neighbours(const NeighbourTable& before, const NeighbourTable& now) {
  Counts counts;
  std::size_t kept = 0;
  const NeighbourView view = now.view();
  for (std::size_t i = 0; i <= view.mask; ++i) {
    const Neighbour& neighbour = view.slots[i];
    if (neighbour.device == kNoPort) continue;
    const MacAddress* const known = before.view().find(neighbour.address, neighbour.device);
    if (known == nullptr) continue;
    ++kept;
    if (*known != neighbour.mac) ++counts.changed;
  }
  counts.added = now.size() - kept;
  counts.removed = before.size() - kept;
  return counts;
}

/// The source MACs by port; one that is not rewritten counts as none.
Counts compare_macs(const std::vector<EgressPort>& before, const std::vector<EgressPort>& now) {
  Counts counts;
  for (std::size_t port = 0; port < now.size(); ++port) {
    const bool had = port < before.size() && before[port].rewrite_source;
    const bool has = now[port].rewrite_source;
    if (has && !had) ++counts.added;
    if (had && !has) ++counts.removed;
    if (had && has && before[port].mac != now[port].mac) ++counts.changed;
  }
  return counts;
}

}  // namespace

std::string table_changes(const ComparedTables& before, const ComparedTables& now, const FromKernel& from_kernel) {
  const auto on_off = [](bool on) { return on ? "true" : "false"; };
  function::Changes changes;
  if (!from_kernel.routes) {
    const std::vector<std::uint32_t> same = same_groups(before.next_hops, now.next_hops);
    changes.count("IPv4 route", compare_routes(before.tables.v4, now.tables.v4, same))
        .count("IPv6 route", compare_routes(before.tables.v6, now.tables.v6, same));
  }
  if (!from_kernel.neighbours) {
    changes.count("neighbour", compare_neighbours(before.tables.neighbours, now.tables.neighbours));
  }
  changes.count("source MAC", compare_macs(before.ports, now.ports))
      .value("ipv4", to_string(before.tables.v4.engine()), to_string(now.tables.v4.engine()))
      .value("verify_checksum", on_off(before.rules.verify_checksum), on_off(now.rules.verify_checksum))
      .value("drop_martians", on_off(before.rules.drop_martians), on_off(now.rules.drop_martians));
  if (before.tables.has_neighbours != now.tables.has_neighbours)
    changes.add(now.tables.has_neighbours ? "destination MACs are rewritten" : "destination MACs are kept");
  return changes.text();
}

}  // namespace penstock::router
