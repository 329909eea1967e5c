// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/route_table.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "nf/router/route_entry.h"

namespace penstock::router {

namespace {

/// The group of the best route, or of all equally good ones if they are joined; empty if these have too many next hops.
/// All routes must have the same prefix.
template <typename Prefix>
std::optional<std::uint32_t> best_group(std::span<const RouteCandidate<Prefix>> routes, NextHopTable& next_hops) {
  const auto& best = *std::ranges::min_element(routes, {}, &RouteCandidate<Prefix>::preference);
  if (!best.joins) return best.group;
  std::vector<NextHop> hops;
  for (const auto& route : routes) {
    if (!route.joins || route.preference != best.preference) continue;
    for (const NextHop& hop : next_hops.hops(route.group)) {
      const auto same = [&](const NextHop& other) {
        return other.gateway == hop.gateway && other.device == hop.device;
      };
      if (std::ranges::any_of(hops, same)) continue;
      if (hops.size() == kMostNextHops) return std::nullopt;
      hops.push_back(hop);
    }
  }
  const std::uint32_t group = next_hops.intern(RouteKind::unicast, hops);
  return group <= kMaxValue ? std::optional(group) : std::nullopt;
}

template <typename Route, typename Prefix>
Result<std::vector<Route>> select_routes(std::vector<RouteCandidate<Prefix>> candidates, NextHopTable& next_hops) {
  // `ip` prints routes in order; then no sorting is needed.
  if (!std::ranges::is_sorted(candidates, {}, &RouteCandidate<Prefix>::prefix)) {
    std::ranges::stable_sort(candidates, {}, &RouteCandidate<Prefix>::prefix);
  }
  std::vector<Route> routes;
  routes.reserve(candidates.size());
  for (auto first = candidates.cbegin(); first != candidates.cend();) {
    auto last = first + 1;
    while (last != candidates.cend() && last->prefix == first->prefix) ++last;
    const auto group = last - first == 1 ? first->group : best_group<Prefix>({first, last}, next_hops);
    if (!group) {
      return failure(Error{
          {}, "too many next hops in the routes for " + to_string(first->prefix), "more than 1024", "at most 1024"});
    }
    routes.push_back({first->prefix, *group});
    first = last;
  }
  return routes;
}

}  // namespace

Result<RouteTable> RouteSelection::select() && {
  RouteTable table;
  auto v4 = select_routes<Route4>(std::move(v4_), next_hops_);
  if (!v4) return failure(std::move(v4).error());
  auto v6 = select_routes<Route6>(std::move(v6_), next_hops_);
  if (!v6) return failure(std::move(v6).error());
  table.v4 = std::move(*v4);
  table.v6 = std::move(*v6);
  table.next_hops = std::move(next_hops_);
  for (const Route4& route : table.v4) table.next_hops.add_route(route.value);
  for (const Route6& route : table.v6) table.next_hops.add_route(route.value);
  return table;
}

}  // namespace penstock::router
