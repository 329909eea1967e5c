// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/steps/host_routes.h"

#include <cstdint>

#include "base/host_address.h"

namespace penstock::firewall {

namespace {

using function::FoundRoute;
using Kind = FoundRoute::Kind;

constexpr std::uint32_t kBroadcast = 0xffffffff;

constexpr std::uint64_t bit_of(PortIndex port) noexcept { return port < 64 ? std::uint64_t{1} << port : 0; }

FoundRoute by(Kind kind, PortIndex port) noexcept { return {kind, bit_of(port), port}; }

/// From a host without an address to all, such as DHCP: Linux asks for no route.
bool has_no_source_yet(const classify::Key& key) noexcept {
  const std::uint64_t to = key.destination.low;
  return key.family == NetworkLayer::ipv4 && key.source == classify::Number{} &&
         (to == kBroadcast || to >> 8 == 0xe00000);
}

}  // namespace

FoundRoute HostRoutes::own(NetworkLayer family, const Ipv6Address& address) const noexcept {
  const bool ipv4 = family == NetworkLayer::ipv4;
  const auto bits = static_cast<std::uint32_t>(address.low);
  constexpr std::uint32_t kLoopbackBroadcast = 0x7fffffff;
  if (ipv4 && bits == kLoopbackBroadcast) return {Kind::broadcast};
  if (ipv4 ? bits >> 24 == 127 : address == Ipv6Address{0, 1}) return {Kind::local};
  for (std::size_t port = 0; port < addresses_.size(); ++port) {
    if (addresses_[port].of(family) == address) return by(Kind::local, static_cast<PortIndex>(port));
  }
  for (std::size_t port = 0; port < addresses_.size(); ++port) {
    if (ipv4 && addresses_[port].broadcast() == Ipv4Address{bits})
      return by(Kind::broadcast, static_cast<PortIndex>(port));
    if (!ipv4 && addresses_[port].subnet_anycast() == address) return by(Kind::anycast, static_cast<PortIndex>(port));
  }
  return {};
}

FoundRoute HostRoutes::find(NetworkLayer family, const Ipv6Address& address, PortIndex in_port) const noexcept {
  if (const FoundRoute route = own(family, address); route.kind != Kind::none) return route;
  const FoundRoute route = routes_->find(family, address);
  if (family == NetworkLayer::ipv4 || !is_link_local(address)) return route;
  // Linux looks for a link-local address only where the packet came. Each interface has the subnet fe80::/64.
  if (route.kind == Kind::local || route.kind == Kind::anycast) return route;
  if (address == Ipv6Address{0xfe80ULL << 48, 0}) return by(Kind::anycast, in_port);
  if (address.high == 0xfe80ULL << 48 || (route.ports & bit_of(in_port)) != 0) return by(Kind::unicast, in_port);
  return {};
}

/// rpfilter_mt, of both families.
bool HostRoutes::holds(const classify::ReversePath& path, const classify::Key& key) const noexcept {
  const bool ipv4 = key.family == NetworkLayer::ipv4;
  const bool not_routable = ipv4 ? has_no_source_yet(key) : key.source == classify::Number{};
  if (not_routable) return !path.negated;
  const FoundRoute route = find(key.family, {key.source.high, key.source.low}, key.in_port);
  const bool by_this_port = path.loose || (route.ports & bit_of(key.in_port)) != 0;
  bool leads_back = false;
  if (route.kind == Kind::unicast) leads_back = by_this_port;
  if (route.kind == Kind::local) leads_back = path.accepts_local && (by_this_port || !ipv4);
  return leads_back != path.negated;
}

/// nft_fib4_eval and nft_fib6_eval.
bool HostRoutes::holds(const classify::RouteOut& out, const classify::Key& key) const noexcept {
  const bool ipv4 = key.family == NetworkLayer::ipv4;
  const classify::Number& number = out.of_source ? key.source : key.destination;
  const Ipv6Address address{number.high, number.low};
  // Each interface has Linux's route to IPv6 group addresses.
  const bool here = has_no_source_yet(key) || (!ipv4 && address.high >> 56 == 0xff);
  const FoundRoute route = here ? by(Kind::unicast, key.in_port) : find(key.family, address, key.in_port);
  bool found = route.kind != Kind::none && route.kind != Kind::local && (ipv4 || route.kind != Kind::anycast);
  PortIndex port = route.first;
  if (out.by_in_port) {
    found &= (route.ports & bit_of(key.in_port)) != 0;
    port = key.in_port;
  }
  return (found && (!out.ports || (*out.ports & bit_of(port)) != 0)) != out.negated;
}

}  // namespace penstock::firewall
