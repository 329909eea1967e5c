// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "base/units.h"
#include "nf/router/route_format.h"
#include "nf/router/route_words.h"
#include "nf/router/router_stage.h"

namespace penstock::router {

namespace {

void apply_neighbours(const RouterChange& change, RouterTables& tables) {
  for (const auto& [address, device] : change.erase_neighbours) tables.neighbours.erase(address, device);
  for (const Neighbour& neighbour : change.neighbours) tables.neighbours.assign(neighbour);
}

/// Adds the group's hops to the edit where the tables have others.
void edit_group(std::uint32_t group, const NextHopTable& next_hops, const RouterTables& tables, std::vector<Hop>& hops,
                TableEdit& edit) {
  hops.resize(next_hops.hops(group).size());
  make_hops(next_hops.kind(group), next_hops.hops(group), tables.neighbours, tables.has_neighbours, hops);
  for (std::uint32_t i = 0; i < hops.size(); ++i) {
    const std::uint32_t place = group + i;
    if (place >= tables.hops.size() || tables.hops[place] != hops[i]) edit.hops.push_back({place, hops[i]});
  }
}

template <typename Prefix>
std::optional<std::uint32_t> exact(const Rib<Prefix>& rib, const Prefix& prefix) {
  if (!rib.contains(prefix)) return std::nullopt;
  return entry_value(rib.match(prefix, prefix.length));
}

template <typename Prefix>
void erase_from(Rib<Prefix>& rib, NextHopTable& next_hops, std::span<const Prefix> prefixes) {
  for (const Prefix& prefix : prefixes) {
    const auto group = exact(rib, prefix);
    if (!group) continue;
    rib.erase(prefix);
    next_hops.remove_route(*group);
  }
}

template <typename Prefix, typename Route>
void insert_into(Rib<Prefix>& rib, NextHopTable& next_hops, const std::vector<Route>& routes) {
  for (const Route& route : routes) {
    const auto before = exact(rib, route.prefix);
    rib.assign(route.prefix, route.value);
    next_hops.add_route(route.value);
    if (before) next_hops.remove_route(*before);
  }
}

}  // namespace

Result<std::unique_ptr<Router>> Router::build(RouterConfig config) {
  Errors errors;
  auto v4 = Fib4::build(config.engine, config.routes.v4);
  auto v6 = Fib6::build(config.routes.v6);
  if (!v4) append(errors, std::move(v4).error());
  if (!v6) append(errors, std::move(v6).error());
  if (!errors.empty()) return failure(std::move(errors));
  auto tables = std::make_unique<RouterTables>(
      RouterTables{std::move(*v4), std::move(*v6), {}, {}, config.neighbours.has_value(), config.ports});
  if (config.neighbours) {
    for (const Neighbour& neighbour : *config.neighbours) tables->neighbours.assign(neighbour);
  }
  const NextHopTable& next_hops = config.routes.next_hops;
  tables->hops.resize(next_hops.places());
  for (std::uint32_t place = 0; place < next_hops.places(); ++place) {
    if (!next_hops.is_group(place)) continue;
    const std::span<const NextHop> group = next_hops.hops(place);
    make_hops(next_hops.kind(place), group, tables->neighbours, tables->has_neighbours,
              std::span(tables->hops).subspan(place, group.size()));
  }
  return std::unique_ptr<Router>(new Router(std::move(config), std::move(tables)));
}

Router::Router(RouterConfig config, std::unique_ptr<const RouterTables> tables)
    : traits_(router_traits(config.rules, tables->has_neighbours,
                            std::ranges::any_of(config.ports, &EgressPort::rewrite_source))),
      rules_(config.rules),
      devices_(std::move(config.devices)),
      next_hops_(std::move(config.routes.next_hops)),
      snapshot_(std::move(tables)) {
  rib4_.reserve(config.routes.v4.size());
  rib6_.reserve(config.routes.v6.size());
  for (const Route4& route : config.routes.v4) rib4_.assign(route.prefix, route.value);
  for (const Route6& route : config.routes.v6) rib6_.assign(route.prefix, route.value);
}

std::unique_ptr<chain::CpuStage> Router::make_cpu_stage() {
  return make_router_stage(snapshot_, rules_, [this](PacketView packet) { return explain(packet); });
}

Result<void> Router::update(const RouterChange& change) {
  const std::lock_guard lock(mutex_);
  auto tables = std::move(shadow_);
  if (tables == nullptr) tables = std::make_unique<RouterTables>(snapshot_.newest());
  apply_neighbours(change, *tables);
  const TableEdit edit = plan(change, *tables);
  if (auto done = tables->apply(edit); !done) {
    discard(edit);
    return done;  // the shadow goes; the next update copies the tables that are in use
  }
  commit(edit);
  publish(std::move(tables), edit, change);
  return {};
}

TableEdit Router::plan(const RouterChange& change, RouterTables& tables) {
  TableEdit edit;
  std::vector<Hop> hops;
  edit.erase4 = change.erase4;
  edit.erase6 = change.erase6;
  const auto add = [&](const auto& routes, auto& inserted) {
    for (const auto& route : routes) {
      const NextHopTable& given = change.routes.next_hops;
      const std::uint32_t group = next_hops_.intern(given.kind(route.value), given.hops(route.value));
      inserted.push_back({route.prefix, group});
      edit_group(group, next_hops_, tables, hops, edit);
    }
  };
  add(change.routes.v4, edit.insert4);
  add(change.routes.v6, edit.insert6);
  if (!change.neighbours.empty() || !change.erase_neighbours.empty()) {
    for (std::uint32_t place = 0; place < next_hops_.places(); ++place) {
      if (next_hops_.is_group(place)) edit_group(place, next_hops_, tables, hops, edit);
    }
  }
  return edit;
}

void Router::commit(const TableEdit& edit) {
  erase_from<Ipv4Prefix>(rib4_, next_hops_, edit.erase4);
  erase_from<Ipv6Prefix>(rib6_, next_hops_, edit.erase6);
  insert_into(rib4_, next_hops_, edit.insert4);
  insert_into(rib6_, next_hops_, edit.insert6);
}

void Router::discard(const TableEdit& edit) {
  for (const Route4& route : edit.insert4) next_hops_.remove_unused(route.value);
  for (const Route6& route : edit.insert6) next_hops_.remove_unused(route.value);
}

void Router::publish(std::unique_ptr<RouterTables> tables, const TableEdit& edit, const RouterChange& change) {
  std::unique_ptr<const RouterTables> before = snapshot_.publish(std::move(tables));
  // Nobody reads it any more, and it was not made as const.
  shadow_.reset(const_cast<RouterTables*>(before.release()));
  apply_neighbours(change, *shadow_);
  if (!shadow_->apply(edit)) shadow_.reset();
}

std::string Router::description() const {
  const std::lock_guard lock(mutex_);
  const RouterTables& tables = snapshot_.newest();
  std::string text = fmt::format("{} IPv4 routes in a {} table of {}, {} IPv6 routes in {}, {} different next hops",
                                 format_count(tables.v4.size()), to_string(tables.v4.engine()),
                                 format_size(tables.v4.memory_bytes()), format_count(tables.v6.size()),
                                 format_size(tables.v6.memory_bytes()), format_count(next_hops_.group_count()));
  if (tables.has_neighbours) text += fmt::format(", {} neighbours", format_count(tables.neighbours.size()));
  return text;
}

void Router::report(nlohmann::json& into) const {
  const std::lock_guard lock(mutex_);
  const RouterTables& tables = snapshot_.newest();
  nlohmann::json& kinds = into["routes_by_kind"] = nlohmann::json::object();
  const auto counts = next_hops_.routes_by_kind();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] != 0) kinds[std::string(kRouteKindNames[i])] = counts[i];
  }
  into["ipv4"] = {
      {"routes", tables.v4.size()}, {"engine", to_string(tables.v4.engine())}, {"bytes", tables.v4.memory_bytes()}};
  into["ipv6"] = {{"routes", tables.v6.size()}, {"bytes", tables.v6.memory_bytes()}};
  into["next_hops"] = {{"groups", next_hops_.group_count()}, {"bytes", tables.hops.size() * sizeof(Hop)}};
  if (tables.has_neighbours) into["neighbours"] = tables.neighbours.size();
}

std::string Router::explain(PacketView packet) const {
  const Verdict checked = check(packet, rules_);
  if (!checked.alive()) return std::string(kDropReasons[checked.value]);
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return "the routes are being updated";
  if (packet.layout().network == NetworkLayer::ipv4) {
    const Ipv4Address address{packet.ipv4().destination.value()};
    const std::uint32_t entry = rib4_.match({address, 32}, 32);
    if (entry_value(entry) == kNoRoute) return "no route to " + to_string(address);
    return explain_route(packet, entry_value(entry), to_string(truncated({address, 32}, entry_length(entry))));
  }
  const Ipv6Address address = packet.ipv6().destination_address();
  const std::uint32_t entry = rib6_.match({address, 128}, 128);
  if (entry_value(entry) == kNoRoute) return "no route to " + to_string(address);
  return explain_route(packet, entry_value(entry), to_string(truncated({address, 128}, entry_length(entry))));
}

std::string Router::explain_route(PacketView packet, std::uint32_t group, const std::string& prefix) const {
  const Hop* const first = snapshot_.newest().hops.data() + group;
  const auto chosen = static_cast<std::size_t>(&select_hop(first, packet.packet->flow_hash) - first);
  const std::span<const NextHop> hops = next_hops_.hops(group);
  std::string text;
  append_route(text, prefix, packet.layout().network == NetworkLayer::ipv4, next_hops_.kind(group),
               hops.subspan(chosen, 1), devices_);
  if (hops.size() > 1) text += fmt::format(" ({} of {} next hops)", chosen + 1, hops.size());
  return text;
}

}  // namespace penstock::router
