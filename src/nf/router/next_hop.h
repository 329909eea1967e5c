// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a route leads to, as host and device both see it. A lookup's value is the index of a group's first hop; the
// group ends at the hop whose upper bound is the highest share. So the common route, with one next hop, costs one load.
//
//     value ──▶ [ hop: share ≤ 2^30 | hop: share ≤ 2^32-1 ]   ECMP, weights 1 and 3: hash-threshold, RFC 2992
//     value ──▶ [ hop: share ≤ 2^32-1 ]                       one next hop, or a blackhole, unreachable …

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "base/ip_address.h"
#include "packet/ethernet.h"
#include "packet/flow_hash.h"
#include "packet/verdict.h"

namespace penstock::router {

/// The types of `ip route`, by their names there.
enum class RouteKind : std::uint8_t {
  unicast,
  local,
  broadcast,
  anycast,
  multicast,
  blackhole,
  unreachable,
  prohibit,
  throw_,  // "no route here"
};
inline constexpr unsigned kRouteKinds = static_cast<unsigned>(RouteKind::throw_) + 1;

/// Addresses of gateways and neighbours: one type holds both families, IPv4 as ffff:ffff:ffff:ffff::a.b.c.d. That is a
/// group's, so no packet and no route leads to it as an IPv6 neighbour, as one may to ::ffff:a.b.c.d (RFC 4291
/// §2.5.5.2).
PENSTOCK_HOST_DEVICE constexpr Ipv6Address mapped(Ipv4Address address) noexcept {
  return {~std::uint64_t{0}, address.bits};
}
constexpr bool is_mapped(Ipv6Address address) noexcept {
  return address.high == ~std::uint64_t{0} && address.low >> 32 == 0;
}
constexpr Ipv4Address unmapped(Ipv6Address address) noexcept { return {static_cast<std::uint32_t>(address.low)}; }

/// Where the frame's new destination MAC comes from.
enum class MacSource : std::uint8_t {
  keep,         // no neighbours are known to this router: the frame keeps the one it has
  hop,          // the gateway's, stored in the hop
  destination,  // a connected route: that of the packet's destination, to be looked up
  unresolved,   // the gateway is no known neighbour
};

struct Hop {
  std::uint32_t upper_bound = ~std::uint32_t{0};  // of the flow shares that go this way
  MacAddress mac{};
  PortIndex port = kNoPort;
  RouteKind kind = RouteKind::blackhole;
  MacSource mac_source = MacSource::keep;
  std::uint8_t reserved[2]{};

  friend constexpr bool operator==(const Hop&, const Hop&) = default;
};
static_assert(sizeof(Hop) == 16);

/// The group's hop in whose range of flow shares `share` lies.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr const Hop& hop_of_share(const Hop* group, std::uint32_t share) noexcept {
  while (share > group->upper_bound) ++group;
  return *group;
}

/// The group's hop for a flow: the same for all its packets, and for as long as the group stays as it is.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr const Hop& select_hop(const Hop* group, std::uint32_t flow_hash) noexcept {
  return hop_of_share(group, flow_share(flow_hash, FlowShare::next_hop));
}

/// What is known of a port that packets leave by.
struct EgressPort {
  MacAddress mac{};
  bool rewrite_source = false;
};

}  // namespace penstock::router
