// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "nf/router/rib.h"
#include "nf/router/route_format.h"

namespace penstock::router {

namespace {

constexpr std::size_t kLongerListed = 4;  // of the more specific routes that do not contain the destination

unsigned common_bits(Ipv4Address a, Ipv4Address b) noexcept {
  return static_cast<unsigned>(std::countl_zero(a.bits ^ b.bits));
}
unsigned common_bits(const Ipv6Address& a, const Ipv6Address& b) noexcept {
  const auto high = static_cast<unsigned>(std::countl_zero(a.high ^ b.high));
  return high < 64 ? high : 64 + static_cast<unsigned>(std::countl_zero(a.low ^ b.low));
}

/// A packet's destination as a prefix, and the table that has its routes.
template <typename Use>
auto with_destination(PacketView packet, const RouterTables& tables, Use&& use) {
  if (packet.layout().network == NetworkLayer::ipv4)
    return use(Ipv4Prefix{Ipv4Address{packet.ipv4().destination.value()}, 32}, tables.v4);
  return use(Ipv6Prefix{packet.ipv6().destination_address(), 128}, tables.v6);
}

/// The route with all its next hops.
template <typename Prefix>
std::string text_of(const Prefix& prefix, std::uint32_t value, const RouterTables& tables, const Devices& devices) {
  const Hop* const first = &tables.hops[value];
  const Hop* const last = &hop_of_share(first, ~std::uint32_t{0});
  std::string text;
  append_route(text, to_string(prefix), std::is_same_v<Prefix, Ipv4Prefix>, first->kind,
               std::span(&tables.next_hops[value], static_cast<std::size_t>(last - first) + 1), devices);
  return text;
}

template <typename Prefix, typename Fib>
std::string chosen_text(const Prefix& host, const Fib& fib, std::uint32_t flow_hash, const RouterTables& tables,
                        const Devices& devices) {
  const std::uint32_t entry = fib.lookup_entry(host.address);
  if (entry_value(entry) == kNoRoute) return "no route to " + to_string(host.address);
  const Hop* const first = &tables.hops[entry_value(entry)];
  const Hop* const chosen = &select_hop(first, flow_hash);
  const Hop* const last = &hop_of_share(first, ~std::uint32_t{0});
  std::string text;
  append_route(text, to_string(truncated(host, entry_length(entry))), std::is_same_v<Prefix, Ipv4Prefix>, chosen->kind,
               std::span(&tables.next_hops[static_cast<std::size_t>(chosen - tables.hops.data())], 1), devices);
  if (last != first) text += fmt::format(" ({} of {} next hops)", chosen - first + 1, last - first + 1);
  return text;
}

/// Longer prefixes that come closest to the destination without containing it, then the shorter ones that contain it.
template <typename Prefix, typename Fib>
void add_other_routes(const Prefix& host, const Fib& fib, const RouterTables& tables, const Devices& devices,
                      function::Explanation& to) {
  const std::uint32_t entry = fib.lookup_entry(host.address);
  const bool found = entry_value(entry) != kNoRoute;
  const unsigned length = found ? entry_length(entry) : 0;
  struct Longer {
    unsigned common;  // bits
    Prefix prefix;
    std::uint32_t value;
  };
  const auto closer = [](const Longer& a, const Longer& b) {
    return std::pair(b.common, a.prefix) < std::pair(a.common, b.prefix);
  };
  std::vector<Longer> longer;
  fib.for_each([&](const Prefix& prefix, std::uint32_t value) {
    const unsigned common = common_bits(prefix.address, host.address);
    if (prefix.length <= length || common < length || common >= prefix.length) return;
    const Longer one{common, prefix, value};
    if (longer.size() == kLongerListed && !closer(one, longer.back())) return ++to.not_listed, void();
    if (longer.size() == kLongerListed) {
      longer.pop_back();
      ++to.not_listed;
    }
    longer.insert(std::ranges::upper_bound(longer, one, closer), one);
  });
  for (const Longer& one : longer) {
    to.passed_over.push_back({text_of(one.prefix, one.value, tables, devices),
                              fmt::format("{} differs from it in bit {}", to_string(host.address), one.common + 1)});
  }
  for (unsigned n = length; found && n-- > 0;) {
    const Prefix shorter = truncated(host, n);
    if (const auto value = fib.value(shorter)) {
      to.passed_over.push_back({text_of(shorter, *value, tables, devices), fmt::format("shorter than /{}", length)});
    }
  }
}

std::string mac_text(const MacAddress& mac) {
  const auto& b = mac.bytes;
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", b[0], b[1], b[2], b[3], b[4], b[5]);
}

/// About the MAC address of the next hop.
void add_neighbour(PacketView packet, const Hop& hop, const RouterTables& tables, const Devices& devices,
                   function::Explanation& to) {
  if (hop.kind != RouteKind::unicast || packet.packet->link_type != LinkType::ethernet) return;
  if (hop.mac_source == MacSource::keep) {
    to.notes.emplace_back("no neighbours are configured: the frame keeps its destination MAC address");
    return;
  }
  const NextHop& next = tables.next_hops[static_cast<std::size_t>(&hop - tables.hops.data())];
  const auto address = [&] {
    if (next.has_gateway())
      return is_mapped(next.gateway) ? to_string(unmapped(next.gateway)) : to_string(next.gateway);
    return with_destination(packet, tables, [](const auto& host, const auto&) { return to_string(host.address); });
  }();
  const MacAddress* const mac = destination_mac(packet, hop, tables.view());
  to.notes.push_back(fmt::format("neighbour {} dev {}: {}", address, devices.name(hop.port),
                                 mac == nullptr ? "its MAC address is unknown" : mac_text(*mac)));
}

}  // namespace

std::string route_of(PacketView packet, const RouterTables& tables, const Devices& devices) {
  return with_destination(packet, tables, [&](const auto& host, const auto& fib) {
    return chosen_text(host, fib, packet.packet->flow_hash, tables, devices);
  });
}

function::Explanation explain_and_send(PacketView packet, const RouterTables& tables, CheckRules rules,
                                       const Devices& devices, bool asks_for_neighbours) {
  function::Explanation explanation;
  Verdict& verdict = packet.packet->verdict;
  verdict = check(packet, rules);
  if (!verdict.alive()) {
    explanation.decided_by = "a check before the lookup";
    return explanation;
  }
  explanation.decided_by = route_of(packet, tables, devices);
  with_destination(packet, tables, [&](const auto& host, const auto& fib) {
    add_other_routes(host, fib, tables, devices, explanation);
    const std::uint32_t value = fib.lookup(host.address);
    if (value != kNoRoute) {
      add_neighbour(packet, select_hop(tables.hops.data() + value, packet.packet->flow_hash), tables, devices,
                    explanation);
    }
    verdict = send(packet, value, tables.view(), rules.host);
    if (rules.host != kNoPort && verdict == Verdict::forward(rules.host))
      explanation.notes.push_back(
          fmt::format("one of the host's addresses: it leaves by port {}", devices.name(rules.host)));
  });
  if (asks_for_neighbours && verdict == Verdict::drop(DropReason::no_neighbour))
    explanation.depends_on = "the neighbour's answer: the packet waits while the kernel asks for its MAC address";
  return explanation;
}

}  // namespace penstock::router
