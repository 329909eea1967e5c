// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/route_table.h"

#include <algorithm>
#include <span>
#include <utility>

namespace penstock::router {

namespace {

/// The group of the best route, or of all the best ones together where they join. The routes have one prefix.
template <typename Prefix>
std::uint32_t best_group(std::span<const RouteCandidate<Prefix>> routes, NextHopTable& next_hops) {
  const auto& best = *std::ranges::min_element(routes, {}, &RouteCandidate<Prefix>::preference);
  if (!best.joins) return best.group;
  std::vector<NextHop> hops;
  for (const auto& route : routes) {
    if (!route.joins || route.preference != best.preference) continue;
    for (const NextHop& hop : next_hops.hops(route.group)) {
      const auto same = [&](const NextHop& other) {
        return other.gateway == hop.gateway && other.device == hop.device;
      };
      if (std::ranges::none_of(hops, same)) hops.push_back(hop);
    }
  }
  return next_hops.intern(RouteKind::unicast, hops);
}

template <typename Route, typename Prefix>
std::vector<Route> select_routes(std::vector<RouteCandidate<Prefix>> candidates, NextHopTable& next_hops) {
  // `ip` prints in order, and then there is nothing to sort.
  if (!std::ranges::is_sorted(candidates, {}, &RouteCandidate<Prefix>::prefix)) {
    std::ranges::stable_sort(candidates, {}, &RouteCandidate<Prefix>::prefix);
  }
  std::vector<Route> routes;
  routes.reserve(candidates.size());
  for (auto first = candidates.cbegin(); first != candidates.cend();) {
    auto last = first + 1;
    while (last != candidates.cend() && last->prefix == first->prefix) ++last;
    const std::uint32_t group = last - first == 1 ? first->group : best_group<Prefix>({first, last}, next_hops);
    routes.push_back({first->prefix, group});
    first = last;
  }
  return routes;
}

}  // namespace

RouteTable RouteSelection::select() && {
  RouteTable table;
  table.v4 = select_routes<Route4>(std::move(v4_), next_hops_);
  table.v6 = select_routes<Route6>(std::move(v6_), next_hops_);
  table.next_hops = std::move(next_hops_);
  for (const Route4& route : table.v4) table.next_hops.add_route(route.value);
  for (const Route6& route : table.v6) table.next_hops.add_route(route.value);
  return table;
}

}  // namespace penstock::router
