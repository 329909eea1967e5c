// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Selects, of the routes that files have for one prefix, the one that the kernel would use.

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "base/ip_address.h"
#include "nf/router/fib_routes.h"
#include "nf/router/next_hop_table.h"

namespace penstock::router {

/// One route for each prefix, in the order of prefixes. The values are groups of `next_hops`.
struct RouteTable {
  std::vector<Route4> v4;
  std::vector<Route6> v6;
  NextHopTable next_hops;
};

/// Of the routes for one prefix, the one with the lowest value is used.
struct RoutePreference {
  std::uint8_t table = kMain;  // in the order of the kernel's lookups
  std::uint32_t metric = 0;
  std::uint8_t router_preference = kMedium;  // RFC 4191

  static constexpr std::uint8_t kLocal = 0, kMain = 1, kDefault = 2;
  static constexpr std::uint8_t kHigh = 0, kMedium = 1, kLow = 2;
  friend constexpr auto operator<=>(const RoutePreference&, const RoutePreference&) = default;
};

template <typename Prefix>
struct RouteCandidate {
  Prefix prefix;
  RoutePreference preference;
  std::uint32_t group = 0;
  bool joins = false;  // IPv6 routes with gateways and equal preference share the load, as in the kernel
};

/// The most routes in all files, used or not, and the most neighbours: the default of the parameter `most_routes`.
inline constexpr std::size_t kMostRoutes = 2'000'000;
/// The most next hops of one route, including a route made from several lines.
inline constexpr std::size_t kMostNextHops = 1024;

/// Add routes in file order; of equal ones, the first is used.
class RouteSelection {
 public:
  void add(const RouteCandidate<Ipv4Prefix>& route) { v4_.push_back(route); }
  void add(const RouteCandidate<Ipv6Prefix>& route) { v6_.push_back(route); }
  NextHopTable& next_hops() noexcept { return next_hops_; }

  /// Fails if routes that are joined have too many next hops.
  [[nodiscard]] Result<RouteTable> select() &&;

 private:
  std::vector<RouteCandidate<Ipv4Prefix>> v4_;
  std::vector<RouteCandidate<Ipv6Prefix>> v6_;
  NextHopTable next_hops_;
};

}  // namespace penstock::router
