// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/units.h"
#include "gpu/devices.h"
#include "nf/router/explain.h"
#include "nf/router/recipe.h"
#include "nf/router/route_words.h"
#include "nf/router/router_stage.h"
#include "nf/router/table_changes.h"

namespace penstock::router {

namespace {

bool changes_neighbours(const RouterChange& change) {
  return change.replaces_neighbours || !change.neighbours.empty() || !change.erase_neighbours.empty();
}

void apply_neighbours(const RouterChange& change, RouterTables& tables) {
  if (change.replaces_neighbours) tables.neighbours.clear();
  for (const auto& [address, device] : change.erase_neighbours) tables.neighbours.erase(address, device);
  for (const Neighbour& neighbour : change.neighbours) tables.neighbours.assign(neighbour);
  tables.failed = change.failed;
  if (changes_neighbours(change)) ++tables.versions.neighbours;
}

void apply_macs(const RouterChange& change, RouterTables& tables) {
  for (const auto& [port, mac] : change.macs) tables.ports[port].mac = mac;
  if (!change.macs.empty()) ++tables.versions.ports;
}

/// Erases the routes that are in the tables and not in `kept`.
template <typename Fib, typename Prefix, typename Route>
void erase_others(const Fib& fib, const std::vector<Route>& kept, std::vector<Prefix>& erased) {
  if (fib.size() == 0) return;
  std::vector<Prefix> prefixes(kept.size());
  std::ranges::transform(kept, prefixes.begin(), &Route::prefix);
  std::ranges::sort(prefixes);
  fib.for_each([&](const Prefix& prefix, std::uint32_t /*value*/) {
    if (!std::ranges::binary_search(prefixes, prefix)) erased.push_back(prefix);
  });
}

/// "the kernel's routes (table main) and neighbours"
std::string to_string(const FromKernel& from) {
  if (!from.any()) return "nothing from the kernel";
  const std::string table = !from.vrf.empty()                      ? "of VRF " + from.vrf
                            : from.table == FromKernel::kMainTable ? "main"
                                                                   : std::to_string(from.table);
  const std::string routes = from.routes ? fmt::format("routes (table {})", table) : "";
  return fmt::format("the kernel's {}{}{}", routes, from.routes && from.neighbours ? " and " : "",
                     from.neighbours ? "neighbours" : "");
}

/// Adds the group's hops to the edit if they differ from those in the tables.
void edit_group(std::uint32_t group, const NextHopTable& next_hops, const RouterTables& tables, std::vector<Hop>& hops,
                TableEdit& edit) {
  hops.resize(next_hops.hops(group).size());
  make_hops(next_hops.kind(group), next_hops.hops(group), tables.neighbours, tables.has_neighbours, hops);
  for (std::uint32_t i = 0; i < hops.size(); ++i) {
    const std::uint32_t place = group + i;
    const NextHop& next = next_hops.hops(group)[i];
    const bool there = place < tables.hops.size() && tables.hops[place] == hops[i] && tables.next_hops[place] == next;
    if (!there) edit.hops.push_back({place, hops[i], next});
  }
}

/// Whether packets for the host get another destination MAC.
bool rewrites_for_host(const RouterConfig& config) {
  const PortIndex host = config.rules.host;
  return host < config.ports.size() && config.ports[host].rewrite_source;
}

}  // namespace

Result<std::unique_ptr<Router>> Router::build(RouterConfig config) {
  Errors errors;
  auto v4 = Fib4::build(config.engine, config.routes.v4);
  auto v6 = Fib6::build(config.routes.v6);
  if (!v4) append(errors, v4.error());
  if (!v6) append(errors, v6.error());
  if (!errors.empty()) return failure(std::move(errors));
  auto tables = std::make_unique<RouterTables>(
      RouterTables{std::move(*v4), std::move(*v6), {}, {}, {}, {}, config.neighbours.has_value(), config.ports, {}});
  if (config.neighbours) {
    for (const Neighbour& neighbour : *config.neighbours) tables->neighbours.assign(neighbour);
  }
  const NextHopTable& next_hops = config.routes.next_hops;
  tables->hops.resize(next_hops.places());
  tables->next_hops.resize(next_hops.places());
  for (std::uint32_t place = 0; place < next_hops.places(); ++place) {
    if (!next_hops.is_group(place)) continue;
    const std::span<const NextHop> group = next_hops.hops(place);
    make_hops(next_hops.kind(place), group, tables->neighbours, tables->has_neighbours,
              std::span(tables->hops).subspan(place, group.size()));
    std::ranges::copy(group, tables->next_hops.begin() + place);
  }
  return std::unique_ptr<Router>(new Router(std::move(config), std::move(tables)));
}

Router::Router(RouterConfig config, std::unique_ptr<const RouterTables> tables)
    : traits_(router_traits(config.rules, tables->has_neighbours || rewrites_for_host(config),
                            std::ranges::any_of(config.ports, &EgressPort::rewrite_source))),
      rules_(config.rules),
      addresses_(std::move(config.addresses)),
      devices_(std::move(config.devices)),
      from_kernel_(std::move(config.from_kernel)),
      own_macs_(std::move(config.own_macs)),
      engine_(config.engine),
      has_neighbours_(tables->has_neighbours),
      next_hops_(std::move(config.routes.next_hops)),
      snapshot_(std::move(tables)) {
  count_loaded();
}

Router::~Router() {
  if (source_ != nullptr) source_->leave(*this);
}

bool Router::takes_mac(PortIndex port) const noexcept {
  return from_kernel_.neighbours && (port >= own_macs_.size() || !own_macs_[port]);
}

std::unique_ptr<function::CpuStage> Router::make_cpu_stage() {
  return make_router_stage(snapshot_, rules_, devices_, addresses_,
                           asks_for_neighbours() ? &source_->missing() : nullptr);
}

std::unique_ptr<DeviceStage> Router::make_device_stage(function::Processor /*processor*/, const StageUse& /*use*/) {
  DeviceSide& side = on_devices_.of_current([&] {
    // An update in progress waits for this reader, and then sees the new DeviceSide.
    const function::Snapshot<RouterTables>::Reader newest(snapshot_);
    return std::make_unique<DeviceSide>(newest.table().spans(), newest.table().versions);
  });
  return side.make_stage(rules_);
}

std::optional<function::StageRecipe> Router::stage_recipe(function::Processor processor) const {
  if (processor != function::Processor::gpu) return std::nullopt;
  // Updates wait for this reader.
  const function::Snapshot<RouterTables>::Reader newest(snapshot_);
  return recipe_of(newest.table().spans(), rules_);
}

Result<void> Router::update(const RouterChange& change) {
  const std::lock_guard lock(updates_);
  TableEdit edit;
  std::vector<std::uint32_t> replaced;
  // If the update ends early, drop the shadow; the next update copies the tables in use.
  struct Discard {
    Router* router;
    const TableEdit* edit;
    ~Discard() {
      if (router != nullptr) router->discard(*edit);
    }
  } discard_unless_certain{this, &edit};
  auto tables = std::move(shadow_);
  if (tables == nullptr) tables = std::make_unique<RouterTables>(snapshot_.newest());
  apply_neighbours(change, *tables);
  apply_macs(change, *tables);
  plan(change, *tables, edit);
  if (auto done = tables->apply(edit, replaced); !done) return done;
  discard_unless_certain.router = nullptr;
  commit(edit, replaced);
  publish(std::move(tables), edit, change);
  follow_on_devices();
  return {};
}

void Router::plan(const RouterChange& change, const RouterTables& tables, TableEdit& edit) {
  std::vector<Hop> hops;
  edit.erase4 = change.erase4;
  edit.erase6 = change.erase6;
  if (change.replaces_routes) {
    erase_others(tables.v4, change.routes.v4, edit.erase4);
    erase_others(tables.v6, change.routes.v6, edit.erase6);
  }
  const auto add = [&](const auto& routes, auto& inserted) {
    inserted.reserve(routes.size());  // so that every interned group gets into the edit, from which it can be discarded
    for (const auto& route : routes) {
      const NextHopTable& given = change.routes.next_hops;
      const std::uint32_t group = next_hops_.intern(given.kind(route.value), given.hops(route.value));
      inserted.push_back({route.prefix, group});
      edit_group(group, next_hops_, tables, hops, edit);
    }
  };
  add(change.routes.v4, edit.insert4);
  add(change.routes.v6, edit.insert6);
  if (changes_neighbours(change)) {
    for (std::uint32_t place = 0; place < next_hops_.places(); ++place) {
      if (next_hops_.is_group(place)) edit_group(place, next_hops_, tables, hops, edit);
    }
  }
}

void Router::discard(const TableEdit& edit) noexcept {
  for (const Route4& route : edit.insert4) next_hops_.remove_unused(route.value);
  for (const Route6& route : edit.insert6) next_hops_.remove_unused(route.value);
}

void Router::commit(const TableEdit& edit, std::span<const std::uint32_t> replaced) noexcept {
  // Add first: a group that loses one route and gains another stays.
  for (const Route4& route : edit.insert4) next_hops_.add_route(route.value);
  for (const Route6& route : edit.insert6) next_hops_.add_route(route.value);
  for (const std::uint32_t group : replaced) next_hops_.remove_route(group);
}

void Router::publish(std::unique_ptr<RouterTables> tables, const TableEdit& edit, const RouterChange& change) {
  std::unique_ptr<const RouterTables> before = snapshot_.publish(std::move(tables));
  if (before->versions != snapshot_.newest().versions) recipe_version_.fetch_add(1, std::memory_order_release);
  count_loaded();
  follow(std::move(before), edit, change);
}

void Router::count_loaded() {
  const RouterTables& tables = snapshot_.newest();
  const std::lock_guard lock(loaded_mutex_);
  loaded_ = {tables.v4.size(),         tables.v4.memory_bytes(),   tables.v6.size(),
             tables.v6.memory_bytes(), next_hops_.group_count(),   tables.hops.size() * (sizeof(Hop) + sizeof(NextHop)),
             tables.neighbours.size(), next_hops_.routes_by_kind()};
}

/// Brings the tables that were in use up to date, as the shadow of the next update.
void Router::follow(std::unique_ptr<const RouterTables> before, const TableEdit& edit, const RouterChange& change) {
  // No stage reads it any more, and it was not created as const.
  std::unique_ptr<RouterTables> previous(const_cast<RouterTables*>(before.release()));
  std::vector<std::uint32_t> replaced;
  try {
    apply_neighbours(change, *previous);
    apply_macs(change, *previous);
    if (previous->apply(edit, replaced)) shadow_ = std::move(previous);
  } catch (const std::bad_alloc&) {
    // The change has been published; the next update copies the tables in use.
  }
}

/// Copies the published tables to all devices that have stages.
void Router::follow_on_devices() noexcept {
  const RouterTables& newest = snapshot_.newest();
  const auto is_outdated = [&](const DeviceSide& side) { return !side.has(newest.versions); };
  while (DeviceSide* const side = on_devices_.find_if(is_outdated)) side->follow(newest.spans(), newest.versions);
}

Router::Loaded Router::loaded() const {
  const std::lock_guard lock(loaded_mutex_);
  return loaded_;
}

Result<std::string> Router::changes_from(const function::NetworkFunction& running) const {
  const auto& before = static_cast<const Router&>(running);
  if (from_kernel_ != before.from_kernel_) {
    return failure(Error{{},
                         "what comes from the kernel cannot change in a reload: it needs a new run",
                         to_string(from_kernel_),
                         to_string(before.from_kernel_)});
  }
  if (rules_.host != before.rules_.host)
    return failure(Error{{}, "another port for the host: it needs a new run", "", ""});
  const std::scoped_lock lock(updates_, before.updates_);
  std::string changes =
      table_changes({before.snapshot_.newest(), before.next_hops_, before.rules_, before.given_macs()},
                    {snapshot_.newest(), next_hops_, rules_, given_macs()}, from_kernel_);
  if (addresses_ == before.addresses_) return changes;
  return changes + (changes.empty() ? "addresses changed" : ", addresses changed");
}

std::vector<EgressPort> Router::given_macs() const {
  std::vector<EgressPort> ports = snapshot_.newest().ports;
  for (std::size_t port = 0; port < ports.size(); ++port) {
    if (takes_mac(static_cast<PortIndex>(port))) ports[port] = {};
  }
  return ports;
}

Result<void> Router::begin_run() {
  if (!from_kernel_.any() || source_ != nullptr) return {};
  return failure(Error{{}, "nothing follows the kernel's tables for this chain", to_string(from_kernel_), "files"});
}

Result<void> Router::take_over(function::NetworkFunction& predecessor) {
  auto& before = static_cast<Router&>(predecessor);
  source_ = before.source_;
  if (source_ != nullptr) {
    if (auto joined = source_->join(*this); !joined) return joined;
  }
  predecessor_ = &before;
  return {};
}

void Router::predecessor_ended() noexcept {
  Router* const before = std::exchange(predecessor_, nullptr);
  if (before == nullptr) return;
  if (source_ != nullptr) source_->leave(*before);
  before->on_devices_.clear();
  const std::lock_guard lock(before->updates_);
  before->shadow_.reset();  // the next update makes it anew
}

std::optional<function::Explanation> Router::explain(PacketView packet) const {
  // Updates wait for this reader.
  const function::Snapshot<RouterTables>::Reader newest(snapshot_);
  return explain_and_send(packet, newest.table(), rules_, devices_, asks_for_neighbours());
}

std::string Router::description() const {
  const Loaded now = loaded();
  if (from_kernel_.any() && now.routes4 + now.routes6 == 0) return "with " + to_string(from_kernel_);
  std::string text = fmt::format("{} in a {} table of {}, {} in {}, {}", format_count(now.routes4, "IPv4 route"),
                                 to_string(engine_), format_size(now.bytes4), format_count(now.routes6, "IPv6 route"),
                                 format_size(now.bytes6), format_count(now.groups, "different next hop"));
  if (has_neighbours_) text += ", " + format_count(now.neighbours, "neighbour");
  return text;
}

void Router::report(nlohmann::json& into) const {
  const Loaded now = loaded();
  nlohmann::json& kinds = into["routes_by_kind"] = nlohmann::json::object();
  for (std::size_t i = 0; i < now.routes_by_kind.size(); ++i) {
    if (now.routes_by_kind[i] != 0) kinds[std::string(kRouteKindNames[i])] = now.routes_by_kind[i];
  }
  into["ipv4"] = {{"routes", now.routes4}, {"engine", to_string(engine_)}, {"bytes", now.bytes4}};
  into["ipv6"] = {{"routes", now.routes6}, {"bytes", now.bytes6}};
  into["next_hops"] = {{"groups", now.groups}, {"bytes", now.hop_bytes}};
  if (has_neighbours_) into["neighbours"] = now.neighbours;
  if (source_ != nullptr) source_->report(into["kernel"]);
}

}  // namespace penstock::router
