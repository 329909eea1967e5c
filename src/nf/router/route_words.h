// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The words that iproute2 prints in routes (print_route and print_rta_multipath), and how we treat them. Words that do
// not affect forwarding (protocol, source hint, TCP metrics, offload state …) are known and ignored.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "nf/router/next_hop.h"

namespace penstock::router {

enum class RouteWord : std::uint8_t {
  via,
  dev,
  weight,
  nexthop,
  metric,
  table,
  src,
  pref,
  proto,
  dead,             // the kernel does not use such next hops
  line_end,         // the backslash of `ip -o`
  value,            // has a value, ignored
  value_v6,         // the same, only in IPv6 routes
  flag,             // has no value, ignored
  type_of_service,  // ignored if it is 0, else not supported
  unsupported,
};

struct RouteWordEntry {
  std::string_view name;
  RouteWord word;
};

// Frequent words first, because the search is linear.
inline constexpr auto kRouteWords = std::to_array<RouteWordEntry>({
    {"via", RouteWord::via},
    {"dev", RouteWord::dev},
    {"proto", RouteWord::proto},
    {"metric", RouteWord::metric},
    {"scope", RouteWord::value},
    {"src", RouteWord::src},
    {"pref", RouteWord::pref},
    {"nhid", RouteWord::value},
    {"nexthop", RouteWord::nexthop},
    {"weight", RouteWord::weight},
    {"onlink", RouteWord::flag},
    {"linkdown", RouteWord::flag},  // used anyway, unless a sysctl is set
    {"dead", RouteWord::dead},
    {"table", RouteWord::table},
    {"\\", RouteWord::line_end},
    {"mtu", RouteWord::value},
    {"lock", RouteWord::flag},
    {"advmss", RouteWord::value},
    {"expires", RouteWord::value},
    {"error", RouteWord::value_v6},
    {"hoplimit", RouteWord::value},
    {"window", RouteWord::value},
    {"rtt", RouteWord::value},
    {"rttvar", RouteWord::value},
    {"ssthresh", RouteWord::value},
    {"cwnd", RouteWord::value},
    {"initcwnd", RouteWord::value},
    {"initrwnd", RouteWord::value},
    {"rto_min", RouteWord::value},
    {"quickack", RouteWord::value},
    {"congctl", RouteWord::value},
    {"reordering", RouteWord::value},
    {"fastopen_no_cookie", RouteWord::value},
    {"features", RouteWord::flag},  // a list of the words below
    {"ecn", RouteWord::flag},
    {"tcp_usec_ts", RouteWord::flag},
    {"realm", RouteWord::value},
    {"realms", RouteWord::value},
    {"ttl-propagate", RouteWord::value},
    {"users", RouteWord::value},
    {"age", RouteWord::value},
    {"offload", RouteWord::flag},
    {"offload_failed", RouteWord::flag},
    {"trap", RouteWord::flag},
    {"rt_offload", RouteWord::flag},
    {"rt_offload_failed", RouteWord::flag},
    {"rt_trap", RouteWord::flag},
    {"notify", RouteWord::flag},
    {"pervasive", RouteWord::flag},
    {"tos", RouteWord::type_of_service},
    {"from", RouteWord::unsupported},   // source-specific
    {"encap", RouteWord::unsupported},  // MPLS, SRv6, tunnels
    {"as", RouteWord::unsupported},
    {"iif", RouteWord::unsupported},
    {"mark", RouteWord::unsupported},
    {"uid", RouteWord::unsupported},
    {"cache", RouteWord::unsupported},  // in the output of `ip route get`
    {"unresolved", RouteWord::unsupported},
});

constexpr std::optional<RouteWord> route_word(std::string_view name) noexcept {
  for (const RouteWordEntry& entry : kRouteWords) {
    if (entry.name == name) return entry.word;
  }
  return std::nullopt;
}

/// Indexed by RouteKind.
inline constexpr std::array<std::string_view, kRouteKinds> kRouteKindNames{
    "unicast",   "local",       "broadcast", "anycast", "multicast",
    "blackhole", "unreachable", "prohibit",  "throw",   "elsewhere"};

constexpr std::string_view to_string(RouteKind kind) noexcept {
  return kRouteKindNames[static_cast<std::size_t>(kind)];
}

}  // namespace penstock::router
