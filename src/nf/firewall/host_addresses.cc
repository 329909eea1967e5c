// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/host_addresses.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "classify/interval_set.h"

namespace penstock::firewall {

namespace {

using classify::Interval;
using classify::IntervalSet;
using classify::Number;

Interval one(std::uint32_t address) { return {{0, address}, {0, address}}; }
Interval one(Ipv6Address address) { return {{address.high, address.low}, {address.high, address.low}}; }

constexpr std::uint64_t kLinkLocal = 0xfe80ULL << 48;

}  // namespace

HostAddresses make_host_addresses(const std::vector<function::PortAddresses>& addresses) {
  HostAddresses host;
  if (std::ranges::none_of(addresses, &function::PortAddresses::any)) return host;
  constexpr std::uint32_t kLoopback = 0x7f000000, kLoopbackBroadcast = 0x7fffffff;
  std::vector<Interval> local4{{{0, kLoopback}, {0, kLoopbackBroadcast - 1}}}, local6{one(Ipv6Address{0, 1})};
  std::vector<Interval> broadcast4{one(0), one(0xffffffff), one(kLoopbackBroadcast)};
  std::vector<Interval> anycast6{one(Ipv6Address{kLinkLocal, 0})};
  host.subnets_known = true;
  for (const function::PortAddresses& of_port : addresses) {
    if (of_port.ipv4) {
      local4.push_back(one(of_port.ipv4->bits));
      host.subnets_known &= of_port.ipv4_bits.has_value();
    }
    if (const auto broadcast = of_port.broadcast()) broadcast4.push_back(one(broadcast->bits));
    if (of_port.ipv6) {
      local6.push_back(one(*of_port.ipv6));
      host.subnets_known &= of_port.ipv6_bits.has_value();
    }
    if (const auto anycast = of_port.subnet_anycast()) anycast6.push_back(one(*anycast));
  }
  host.local4 = classify::united(std::move(local4));
  host.local6 = classify::united(std::move(local6));
  host.broadcast4 = classify::united(std::move(broadcast4));
  host.anycast6 = classify::united(std::move(anycast6));
  return host;
}

std::optional<IntervalSet> HostAddresses::of_type(NetworkLayer family, std::string_view type) const {
  const bool ipv4 = family == NetworkLayer::ipv4;
  if (type == "local") return local(family);
  if (type == "broadcast") return ipv4 ? broadcast4 : IntervalSet{};
  if (type == "anycast") return ipv4 ? IntervalSet{} : anycast6;
  if (type != "multicast") return std::nullopt;
  return IntervalSet{ipv4 ? Interval{{0, 0xe0000000}, {0, 0xefffffff}}
                          : Interval{{0xffULL << 56, 0}, {~std::uint64_t{0}, ~std::uint64_t{0}}}};
}

std::string_view HostAddresses::lacks(std::string_view type) const noexcept {
  if (type == "multicast") return "";
  if (!known()) return "needs the addresses of this host: the parameter `addresses`";
  if (type == "local" || subnets_known) return "";
  return "needs the prefix lengths of all `addresses`, such as {wan: 203.0.113.5/24}";
}

}  // namespace penstock::firewall
