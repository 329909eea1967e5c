// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/route_format.h"

#include "base/ip_address.h"
#include "nf/router/route_words.h"

namespace penstock::router {

void append_hop(std::string& text, const NextHop& hop, bool ipv4, const Devices& devices) {
  if (hop.has_gateway()) {
    const bool v4_gateway = ipv4 && is_mapped(hop.gateway);
    text += ipv4 && !v4_gateway ? "via inet6 " : "via ";
    text += v4_gateway ? to_string(unmapped(hop.gateway)) : to_string(hop.gateway);
    text += ' ';
  }
  text += "dev ";
  text += devices.name(hop.device);
}

void append_route(std::string& text, std::string_view prefix, bool ipv4, RouteKind kind, std::span<const NextHop> hops,
                  const Devices& devices) {
  if (kind != RouteKind::unicast) {
    text += to_string(kind);
    text += ' ';
  }
  text += prefix;
  for (const NextHop& hop : hops) {
    if (hop.device == kNoPort) continue;
    text += hops.size() == 1 ? " " : " nexthop ";
    append_hop(text, hop, ipv4, devices);
    if (hops.size() != 1) text += " weight " + std::to_string(hop.weight);
  }
}

}  // namespace penstock::router
