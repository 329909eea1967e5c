// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/kernel/kernel_routes.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace penstock::control {

using How = RouteMessage::How;

namespace {

bool may_join(const RouteMessage& message) {
  return std::holds_alternative<Ipv6Prefix>(message.prefix) && message.kind == RouteKind::unicast && !message.learnt &&
         message.nexthop == 0 &&
         std::ranges::all_of(message.hops, [](const KernelHop& hop) { return hop.gateway != Ipv6Address{}; });
}

}  // namespace

void KernelRoutes::set_ports(PortOf port_of) {
  port_of_ = std::move(port_of);
  for (auto& [interface, link] : links_) link.port = port_of_(link.name);
  mark([](const Route&) { return true; });
}

// Links.

void KernelRoutes::apply(const LinkMessage& message) {
  const auto known = links_.find(message.interface);
  if (message.removed) {
    if (known == links_.end()) return;
    links_.erase(known);
    wants_dump_ = true;
    mark_links(message.interface);
    return;
  }
  const Link before = known == links_.end() ? Link{} : known->second;
  Link& link = known == links_.end() ? links_[message.interface] : known->second;
  link = {message.name,    message.up,  message.carrier,   message.loopback,
          message.has_mac, message.mac, message.vrf_table, port_of_ ? port_of_(message.name) : kNoPort};
  wants_dump_ |= before.up && !link.up;
  // Without a carrier, the kernel removes nexthop objects, and with them their routes.
  wants_dump_ |= before.carrier && !link.carrier && !nexthops_.empty();
  if (before.up != link.up || before.port != link.port) mark_links(message.interface);
}

void KernelRoutes::mark_links(std::uint32_t interface) {
  if (dumping_) return;
  const std::vector<bool> affected = paths_.through(interface);
  std::vector<std::uint32_t> objects;
  for (const auto& [id, nexthop] : nexthops_) {
    if (nexthop.hop.interface != interface) continue;
    for (const std::uint32_t with : with_groups(id)) objects.push_back(with);
  }
  mark([&](const Route& route) {
    return (route.path != kNone && affected[route.path]) ||
           (route.nexthop != 0 && std::ranges::find(objects, route.nexthop) != objects.end());
  });
}

// Nexthop objects.

/// The object, and the groups that contain it.
std::vector<std::uint32_t> KernelRoutes::with_groups(std::uint32_t nexthop) const {
  std::vector<std::uint32_t> objects{nexthop};
  for (const auto& [id, group] : nexthops_) {
    if (std::ranges::find(group.members, nexthop, &NexthopMessage::Member::id) != group.members.end())
      objects.push_back(id);
  }
  return objects;
}

void KernelRoutes::apply(const NexthopMessage& message) {
  const auto known = nexthops_.find(message.id);
  if (message.removed && known == nexthops_.end()) return;
  if (!message.removed && known == nexthops_.end() && nexthops_.size() >= most_routes_) {
    ++left_out_;
    return;
  }
  std::vector<std::uint32_t> affected;
  if (known != nexthops_.end()) affected = with_groups(message.id);
  std::erase_if(affected, [&](std::uint32_t id) { return !nexthops_.contains(id) || nexthops_[id].uses == 0; });
  if (message.removed) {
    if (known->second.uses > 0) remove_routes_of(message.id);
    for (auto& [id, group] : nexthops_) {
      std::erase_if(group.members, [&](const NexthopMessage::Member& member) { return member.id == message.id; });
    }
    nexthops_.erase(message.id);
  } else {
    Nexthop& nexthop = nexthops_[message.id];
    nexthop.blackhole = message.blackhole;
    nexthop.hop = message.hop;
    nexthop.members = message.members;
    nexthop.dumped = true;
  }
  if (affected.empty() || dumping_) return;  // after a dump, all routes are looked at
  mark([&](const Route& route) {
    return route.nexthop != 0 && std::ranges::find(affected, route.nexthop) != affected.end();
  });
}

/// The kernel removes them with the object, without a message.
void KernelRoutes::remove_routes_of(std::uint32_t nexthop) {
  const auto remove_from = [&](auto& family) {
    for (auto& [prefix, entry] : family.entries) {
      for (std::size_t i = entry.routes.size(); i-- > 0;) {
        if (entry.routes[i].nexthop != nexthop) continue;
        remove(entry, i);
        mark(family, prefix, entry);
      }
    }
  };
  remove_from(v4_);
  remove_from(v6_);
}

// Routes.

std::uint8_t KernelRoutes::rank_of(std::uint32_t table) const noexcept {
  return static_cast<std::uint8_t>(std::ranges::find(tables_, table) - tables_.begin());
}

void KernelRoutes::apply(const RouteMessage& message) {
  const std::uint8_t rank = rank_of(message.table);
  if (rank == tables_.size()) return;
  if (const auto* const prefix = std::get_if<Ipv4Prefix>(&message.prefix)) {
    apply_to(v4_, *prefix, message, rank);
  } else {
    apply_to(v6_, std::get<Ipv6Prefix>(message.prefix), message, rank);
  }
}

template <typename Prefix>
void KernelRoutes::apply_to(Family<Prefix>& family, const Prefix& prefix, const RouteMessage& message,
                            std::uint8_t rank) {
  auto found = family.entries.find(prefix);
  if (found == family.entries.end()) {
    if (message.how == How::removes) return;
    if (size_ >= most_routes_) {
      ++left_out_;
      return;
    }
    found = family.entries.try_emplace(prefix).first;
  }
  Entry& entry = found->second;
  if (dumping_ && !entry.dumped) {
    while (!entry.routes.empty()) remove(entry, entry.routes.size() - 1);
    entry.dumped = true;
  }
  const auto order = [](const Route& route) { return std::pair(route.rank, route.metric); };
  const auto key = std::pair(rank, message.metric);
  const auto all = entry.routes.begin();
  const auto begin = std::partition_point(all, entry.routes.end(), [&](const Route& r) { return order(r) < key; });
  const auto end = std::partition_point(begin, entry.routes.end(), [&](const Route& r) { return order(r) == key; });
  const auto first = static_cast<std::size_t>(begin - all);
  const auto last = static_cast<std::size_t>(end - all);
  if constexpr (std::is_same_v<Prefix, Ipv4Prefix>) {
    apply_ipv4(entry, message, first, last, rank);
  } else {
    apply_ipv6(entry, message, first, last, rank);
  }
  mark(family, prefix, entry);
}

bool KernelRoutes::same(const Route& route, const RouteMessage& message) const noexcept {
  if (route.kind != message.kind || route.nexthop != message.nexthop) return false;
  return route.path == kNone || std::ranges::equal(paths_.hops(route.path), message.hops);
}

/// [first, last): the routes of the same table and metric. The kernel uses the first of them. Messages that are older
/// than the last dump may say what it has said already; they then change nothing.
void KernelRoutes::apply_ipv4(Entry& entry, const RouteMessage& message, std::size_t first, std::size_t last,
                              std::uint8_t rank) {
  std::size_t equal = first;
  while (equal < last && !same(entry.routes[equal], message)) ++equal;
  switch (message.how) {
    case How::removes:
      if (equal < last) return remove(entry, equal);
      if (first < last) wants_dump_ = true;  // it is one of them, but which?
      return;
    case How::replaces:
      if (equal == last && first < last) return replace(entry.routes[first], message);
      [[fallthrough]];
    case How::prepends:
      if (equal == last) add(entry, first, message, rank);
      return;
    case How::appends:
      if (equal == last) add(entry, last, message, rank);
      return;
  }
}

/// Routes with gateways and the same metric share the load: they are one route here, and a message has all of their
/// next hops, unless it removes some.
void KernelRoutes::apply_ipv6(Entry& entry, const RouteMessage& message, std::size_t first, std::size_t last,
                              std::uint8_t rank) {
  if (message.how == How::removes) return remove_ipv6(entry, message, first, last);
  const bool joins = may_join(message);
  for (std::size_t i = first; i < last; ++i) {
    if (same(entry.routes[i], message)) return;
  }
  for (std::size_t i = first; i < last; ++i) {
    if (entry.routes[i].joins == joins && (joins || message.how == How::replaces))
      return replace(entry.routes[i], message);
  }
  if (message.how == How::replaces && first < last) return replace(entry.routes[first], message);
  add(entry, last, message, rank);
}

void KernelRoutes::remove_ipv6(Entry& entry, const RouteMessage& message, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i) {
    Route& route = entry.routes[i];
    if (same(route, message)) return remove(entry, i);
    if (!route.joins || !may_join(message)) continue;
    std::vector<KernelHop> left(paths_.hops(route.path).begin(), paths_.hops(route.path).end());
    std::erase_if(left, [&](const KernelHop& hop) {
      return std::ranges::any_of(message.hops, [&](const KernelHop& gone) {
        return hop.gateway == gone.gateway && hop.interface == gone.interface;
      });
    });
    if (left.empty()) return remove(entry, i);
    const std::uint32_t path = paths_.use(left);
    paths_.release(std::exchange(route.path, path));
    return;
  }
  if (first < last) wants_dump_ = true;
}

void KernelRoutes::add(Entry& entry, std::size_t at, const RouteMessage& message, std::uint8_t rank) {
  if (size_ >= most_routes_) {
    ++left_out_;
    return;
  }
  Route route;
  route.metric = message.metric;
  route.rank = rank;
  fill(route, message);
  entry.routes.insert(entry.routes.begin() + static_cast<std::ptrdiff_t>(at), route);
  ++size_;
  ++by_rank_[rank];
}

void KernelRoutes::replace(Route& route, const RouteMessage& message) {
  const Route before = route;
  fill(route, message);
  Route gone = before;
  clear(gone);
}

void KernelRoutes::remove(Entry& entry, std::size_t at) {
  clear(entry.routes[at]);
  --by_rank_[entry.routes[at].rank];
  entry.routes.erase(entry.routes.begin() + static_cast<std::ptrdiff_t>(at));
  --size_;
}

void KernelRoutes::fill(Route& route, const RouteMessage& message) {
  route.kind = message.kind;
  route.joins = may_join(message);
  route.nexthop = message.nexthop;
  route.path = message.kind == RouteKind::unicast && message.nexthop == 0 ? paths_.use(message.hops) : kNone;
  if (message.nexthop == 0) return;
  // If the object is unknown, a message about it is lost.
  if (const auto object = nexthops_.find(message.nexthop); object != nexthops_.end()) {
    ++object->second.uses;
  } else {
    route.nexthop = 0;
    route.kind = RouteKind::elsewhere;
    wants_dump_ = true;
  }
}

void KernelRoutes::clear(Route& route) {
  if (route.path != kNone) paths_.release(route.path);
  if (route.nexthop == 0) return;
  if (const auto object = nexthops_.find(route.nexthop); object != nexthops_.end()) --object->second.uses;
}

template <typename Prefix>
void KernelRoutes::mark(Family<Prefix>& family, const Prefix& prefix, Entry& entry) {
  if (std::exchange(entry.dirty, true)) return;
  family.dirty.push_back(prefix);
}

template <typename Affected>
void KernelRoutes::mark(Affected&& affected) {
  const auto mark_in = [&](auto& family) {
    for (auto& [prefix, entry] : family.entries) {
      if (std::ranges::any_of(entry.routes, affected)) mark(family, prefix, entry);
    }
  };
  mark_in(v4_);
  mark_in(v6_);
}

// Dumps.

void KernelRoutes::begin_dump() {
  wants_dump_ = false;
  dumping_ = true;
  left_out_ = 0;
  links_.clear();
  for (auto& [id, nexthop] : nexthops_) nexthop.dumped = false;  // they stay, because routes count as their uses
  for (auto& [prefix, entry] : v4_.entries) entry.dumped = false;
  for (auto& [prefix, entry] : v6_.entries) entry.dumped = false;
}

template <typename Prefix>
void KernelRoutes::sweep(Family<Prefix>& family) {
  for (auto& [prefix, entry] : family.entries) {
    if (!entry.dumped) {
      while (!entry.routes.empty()) remove(entry, entry.routes.size() - 1);
    }
    mark(family, prefix, entry);
  }
}

void KernelRoutes::end_dump() {
  dumping_ = false;
  sweep(v4_);
  sweep(v6_);
  std::erase_if(nexthops_, [](const auto& item) { return !item.second.dumped; });
}

// The routes of the router.

/// Whether the link is up.
bool KernelRoutes::add_hop(const KernelHop& hop, Target& target, bool& usable) const {
  const auto found = links_.find(hop.interface);
  if (found == links_.end() || !found->second.up) return false;
  const Link& link = found->second;
  usable = true;
  if (link.loopback) target.kind = RouteKind::local;
  if (!link.loopback && !hop.encapsulated && link.port != kNoPort)
    target.hops.push_back({hop.gateway, link.port, hop.weight});
  return true;
}

/// False if all of the route's links are down: the kernel does not use it.
bool KernelRoutes::resolve(const Route& route, Target& target) const {
  target.hops.clear();
  target.kind = RouteKind::elsewhere;
  bool usable = false;
  const auto add_object = [&](std::uint32_t id, std::uint16_t weight) {
    const auto object = nexthops_.find(id);
    if (object == nexthops_.end()) return;
    if (object->second.blackhole) {
      usable = true;
      target.kind = RouteKind::blackhole;
      return;
    }
    KernelHop hop = object->second.hop;
    hop.weight = weight;
    add_hop(hop, target, usable);
  };
  if (route.nexthop != 0) {
    const auto object = nexthops_.find(route.nexthop);
    if (object == nexthops_.end()) return false;
    if (object->second.members.empty()) {
      add_object(route.nexthop, 1);
    } else {
      for (const auto& [id, weight] : object->second.members) add_object(id, weight);
    }
  } else if (route.path != kNone) {
    for (const KernelHop& hop : paths_.hops(route.path)) add_hop(hop, target, usable);
  } else {
    target.kind = route.kind;
    usable = true;
  }
  if (!target.hops.empty()) {
    target.kind = RouteKind::unicast;
  } else {
    target.hops.push_back({});
  }
  return usable;
}

template <typename Prefix, typename Result>
void KernelRoutes::take_changes(Family<Prefix>& family, std::vector<Result>& routes, std::vector<Prefix>& erased,
                                router::NextHopTable& next_hops) {
  for (const Prefix& prefix : family.dirty) {
    const auto found = family.entries.find(prefix);
    Entry& entry = found->second;
    entry.dirty = false;
    const bool usable = std::ranges::any_of(entry.routes, [&](const Route& route) { return resolve(route, target_); });
    const std::uint32_t before = entry.published;
    if (usable) {
      const std::uint32_t group = published_.intern(target_.kind, target_.hops);
      if (group != before) {
        published_.add_route(group);
        if (before != kNone) published_.remove_route(before);
        entry.published = group;
        routes.push_back({prefix, next_hops.intern(target_.kind, target_.hops)});
      }
    } else if (before != kNone) {
      published_.remove_route(before);
      entry.published = kNone;
      erased.push_back(prefix);
    }
    if (entry.routes.empty()) family.entries.erase(found);
  }
  family.dirty.clear();
}

void KernelRoutes::take_changes(router::RouterChange& change) {
  take_changes(v4_, change.routes.v4, change.erase4, change.routes.next_hops);
  take_changes(v6_, change.routes.v6, change.erase6, change.routes.next_hops);
}

void KernelRoutes::add_all(router::RouterChange& change) const {
  const auto add_from = [&](const auto& family, auto& routes) {
    routes.reserve(routes.size() + family.entries.size());
    for (const auto& [prefix, entry] : family.entries) {
      if (entry.published == kNone) continue;
      const std::uint32_t group = entry.published;
      routes.push_back({prefix, change.routes.next_hops.intern(published_.kind(group), published_.hops(group))});
    }
  };
  add_from(v4_, change.routes.v4);
  add_from(v6_, change.routes.v6);
}

}  // namespace penstock::control
