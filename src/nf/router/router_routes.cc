// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The router's routes, for other functions of the chain.

#include <cstdint>
#include <memory>

#include "nf/router/router.h"

namespace penstock::router {

namespace {

using Kind = function::FoundRoute::Kind;

constexpr Kind kind_of(RouteKind kind) noexcept {
  switch (kind) {
    case RouteKind::unicast:
    case RouteKind::elsewhere: return Kind::unicast;
    case RouteKind::local: return Kind::local;
    case RouteKind::broadcast: return Kind::broadcast;
    case RouteKind::anycast: return Kind::anycast;
    case RouteKind::multicast: return Kind::multicast;
    case RouteKind::blackhole:
    case RouteKind::unreachable:
    case RouteKind::prohibit:
    case RouteKind::throw_: break;
  }
  return Kind::none;
}

class Reader final : public function::RouteReader {
 public:
  explicit Reader(function::Snapshot<RouterTables>& tables) : tables_(tables) {}

  void refresh() noexcept override { tables_.refresh(); }

  function::FoundRoute find(NetworkLayer family, const Ipv6Address& address) const noexcept override {
    const RouterTables& now = tables_.table();
    const std::uint32_t value = family == NetworkLayer::ipv4
                                    ? now.v4.lookup(Ipv4Address{static_cast<std::uint32_t>(address.low)})
                                    : now.v6.lookup(address);
    if (value == kNoRoute) return {};
    const Hop* hop = &now.hops[value];
    function::FoundRoute route{kind_of(hop->kind), 0, hop->port};
    for (;; ++hop) {
      if (hop->port < 64) route.ports |= std::uint64_t{1} << hop->port;
      if (hop->upper_bound == ~std::uint32_t{0}) return route;
    }
  }

 private:
  function::Snapshot<RouterTables>::Reader tables_;
};

}  // namespace

std::unique_ptr<function::RouteReader> Router::read_routes() { return std::make_unique<Reader>(snapshot_); }

}  // namespace penstock::router
