// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The next hops of all routes. Each distinct group is stored once: a full BGP table has a million routes but only some
// ten thousand groups. A group is a range of consecutive places; its number is its first place, which is also its index
// in the hops that packets use (next_hop.h). Routes are reference-counted per group, and the places of unused groups
// are reused.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/ip_address.h"
#include "nf/router/next_hop.h"

namespace penstock::router {

struct NextHop {
  Ipv6Address gateway;  // all zeros: no gateway, the destination itself is on the link
  PortIndex device = kNoPort;
  std::uint16_t weight = 1;  // 1..256

  [[nodiscard]] constexpr bool has_gateway() const noexcept { return gateway != Ipv6Address{}; }
  friend constexpr bool operator==(const NextHop&, const NextHop&) = default;
};

class NextHopTable {
 public:
  /// Returns the number of the group, adding it if it is new. `hops` has at least one hop, and exactly one for all
  /// kinds except unicast. If memory runs out, the table is unchanged.
  [[nodiscard]] std::uint32_t intern(RouteKind kind, std::span<const NextHop> hops);

  /// The number of the group, if it is there.
  [[nodiscard]] std::optional<std::uint32_t> find(RouteKind kind, std::span<const NextHop> hops) const noexcept;

  [[nodiscard]] RouteKind kind(std::uint32_t group) const noexcept { return groups_[group].kind; }
  [[nodiscard]] std::span<const NextHop> hops(std::uint32_t group) const noexcept {
    return std::span(hops_).subspan(group, groups_[group].count);
  }

  void add_route(std::uint32_t group) noexcept;
  /// Removes the group with its last route.
  void remove_route(std::uint32_t group) noexcept;
  /// Removes the group if no route uses it.
  void remove_unused(std::uint32_t group) noexcept;

  /// The number of places; the numbers of groups are below it.
  [[nodiscard]] std::size_t places() const noexcept { return hops_.size(); }
  /// Whether a group begins at this place.
  [[nodiscard]] bool is_group(std::uint32_t place) const noexcept { return groups_[place].count != 0; }
  [[nodiscard]] std::size_t group_count() const noexcept { return by_hash_.size(); }
  /// The number of routes of each kind.
  [[nodiscard]] const std::array<std::size_t, kRouteKinds>& routes_by_kind() const noexcept { return routes_by_kind_; }

 private:
  struct Group {
    std::uint32_t routes = 0;  // number of routes; at the start of a free range: the next free range of the same length
    std::uint16_t count = 0;   // number of hops; 0 if no group begins here
    RouteKind kind = RouteKind::unicast;
  };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  [[nodiscard]] static std::uint64_t hash(RouteKind kind, std::span<const NextHop> hops) noexcept;

  std::vector<NextHop> hops_;
  std::vector<Group> groups_;  // same size as hops_
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;
  std::map<std::size_t, std::uint32_t> free_;  // by length: the first free range, or kNone. They form linked lists, so
                                               // that freeing does not allocate
  std::array<std::size_t, kRouteKinds> routes_by_kind_{};
};

}  // namespace penstock::router
