// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The targets of routes, shared by host and device. A lookup's value is the index of a group's first hop; the group
// ends at the hop whose upper bound is the highest share. So the common case, a route with one next hop, costs one
// load.
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

/// The route types of `ip route`, with the same names, and one more.
enum class RouteKind : std::uint8_t {
  unicast,
  local,
  broadcast,
  anycast,
  multicast,
  blackhole,
  unreachable,
  prohibit,
  throw_,     // "no route here"
  elsewhere,  // the kernel's route leads through no port of the chain, or into a tunnel of the kernel
};
inline constexpr unsigned kRouteKinds = static_cast<unsigned>(RouteKind::elsewhere) + 1;

/// IPv4 addresses of gateways and neighbours as IPv6 addresses, so that one type holds both families:
/// ffff:ffff:ffff:ffff::a.b.c.d. This is a multicast address, so no IPv6 neighbour can have it; ::ffff:a.b.c.d (RFC
/// 4291 §2.5.5.2), in contrast, could be one.
PENSTOCK_HOST_DEVICE constexpr Ipv6Address mapped(Ipv4Address address) noexcept {
  return {~std::uint64_t{0}, address.bits};
}
constexpr bool is_mapped(Ipv6Address address) noexcept {
  return address.high == ~std::uint64_t{0} && address.low >> 32 == 0;
}
constexpr Ipv4Address unmapped(Ipv6Address address) noexcept { return {static_cast<std::uint32_t>(address.low)}; }

/// Where the frame's new destination MAC comes from.
enum class MacSource : std::uint8_t {
  keep,         // the router has no neighbours configured: the frame keeps its MAC
  hop,          // the gateway's MAC, stored in the hop
  destination,  // a connected route: the MAC of the packet's destination, to be looked up
  unresolved,   // the gateway is not a known neighbour
};

struct Hop {
  std::uint32_t upper_bound = ~std::uint32_t{0};  // the highest flow share that uses this hop
  MacAddress mac{};
  PortIndex port = kNoPort;
  RouteKind kind = RouteKind::blackhole;
  MacSource mac_source = MacSource::keep;
  std::uint8_t reserved[2]{};

  friend constexpr bool operator==(const Hop&, const Hop&) = default;
};
static_assert(sizeof(Hop) == 16);

/// The hop of the group whose range of flow shares contains `share`.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr const Hop& hop_of_share(const Hop* group, std::uint32_t share) noexcept {
  while (share > group->upper_bound) ++group;
  return *group;
}

/// The group's hop for a flow: the same for all its packets, as long as the group does not change.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr const Hop& select_hop(const Hop* group, std::uint32_t flow_hash) noexcept {
  return hop_of_share(group, flow_share(flow_hash, FlowShare::next_hop));
}

/// Properties of an output port.
struct EgressPort {
  MacAddress mac{};
  bool rewrite_source = false;
};

}  // namespace penstock::router
