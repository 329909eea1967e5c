// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The next hops of all routes, each different group of them stored once: a full BGP table has a million routes and some
// ten thousand groups. A group is a run of places; its first place is its number, also in the hops that packets see
// (next_hop.h). Groups are counted by the routes that use them, and their places are used again.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/ip_address.h"
#include "nf/router/next_hop.h"

namespace penstock::router {

struct NextHop {
  Ipv6Address gateway;  // all zeros: none, the destination itself is on the link
  PortIndex device = kNoPort;
  std::uint16_t weight = 1;  // 1..256

  [[nodiscard]] constexpr bool has_gateway() const noexcept { return gateway != Ipv6Address{}; }
  friend constexpr bool operator==(const NextHop&, const NextHop&) = default;
};

class NextHopTable {
 public:
  /// The number of the group, which is added where it is new. `hops` holds at least one, and one for all kinds but
  /// unicast. Where memory runs out, the table is as it was.
  [[nodiscard]] std::uint32_t intern(RouteKind kind, std::span<const NextHop> hops);

  [[nodiscard]] RouteKind kind(std::uint32_t group) const noexcept { return groups_[group].kind; }
  [[nodiscard]] std::span<const NextHop> hops(std::uint32_t group) const noexcept {
    return std::span(hops_).subspan(group, groups_[group].count);
  }

  void add_route(std::uint32_t group) noexcept;
  /// The group is gone with its last route.
  void remove_route(std::uint32_t group) noexcept;
  /// Removes the group if no route has it.
  void remove_unused(std::uint32_t group) noexcept;

  /// All places; groups have numbers below.
  [[nodiscard]] std::size_t places() const noexcept { return hops_.size(); }
  /// Whether a group begins at this place.
  [[nodiscard]] bool is_group(std::uint32_t place) const noexcept { return groups_[place].count != 0; }
  [[nodiscard]] std::size_t group_count() const noexcept { return by_hash_.size(); }
  /// How many routes are of each kind.
  [[nodiscard]] const std::array<std::size_t, kRouteKinds>& routes_by_kind() const noexcept { return routes_by_kind_; }

 private:
  struct Group {
    std::uint32_t routes = 0;  // where a free run of places begins: the next such run of as many
    std::uint16_t count = 0;   // of hops; 0 where no group begins
    RouteKind kind = RouteKind::unicast;
  };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  [[nodiscard]] static std::uint64_t hash(RouteKind kind, std::span<const NextHop> hops) noexcept;

  std::vector<NextHop> hops_;
  std::vector<Group> groups_;  // as many
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;
  std::map<std::size_t, std::uint32_t> free_;  // by count: the first free run, or kNone; linked, to allocate nothing
  std::array<std::size_t, kRouteKinds> routes_by_kind_{};
};

}  // namespace penstock::router
