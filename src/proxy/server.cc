// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/server.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/least_limit.h"
#include "base/log.h"
#include "base/stoppable_wait.h"
#include "base/units.h"
#include "gpu/cuda_error.h"
#include "ipc/foreign_descriptor.h"
#include "proxy/problem.h"

namespace penstock::proxy {

namespace {

using Json = nlohmann::ordered_json;
using std::chrono::steady_clock;

/// For JSON and logs: a tenant chooses its name.
std::string name_of(const Hello& hello) {
  return hello.name.view().empty() ? "without a name" : printable(hello.name.view());
}

/// For Prometheus, whose text format only escapes '"', '\\' and the end of a line, and has all else in UTF-8.
std::string label_of(const Hello& hello) {
  std::string text(hello.name.view());
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Result<std::unique_ptr<Server>> Server::start(ServerSettings settings, std::unique_ptr<Backend> backend,
                                              Inheritance inherited) {
  if (settings.multiprocessors == MultiprocessorShares::green_contexts) {
    try {
      backend->divide_multiprocessors();
    } catch (const gpu::CudaError& error) {
      return failure(
          problem(fmt::format("the multiprocessors of {} cannot be divided by green contexts", backend->device()),
                  error.what(), "a driver and a GPU that can, or --multiprocessors blocks"));
    }
  }
  if (inherited.policy) settings.policy = *inherited.policy;
  if (!inherited.listener) {
    auto listener = Listener::open(settings.path, settings.mode);
    if (!listener) return failure(std::move(listener.error()));
    inherited.listener.emplace(std::move(*listener));
  }
  return std::unique_ptr<Server>(
      new Server(std::move(settings), std::move(backend), std::move(*inherited.listener), inherited));
}

Server::Server(ServerSettings settings, std::unique_ptr<Backend> backend, Listener listener,
               const Inheritance& inherited)
    : settings_(std::move(settings)),
      backend_(std::move(backend)),
      listener_(std::move(listener)),
      restarts_(inherited.restarts),
      restarts_in_a_row_(inherited.in_a_row),
      arbiter_(settings_.policy, settings_.device),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      device_asker_([this](const std::stop_token& stop) { ask_device(stop); }),
      watcher_([this](const std::stop_token& stop) { watch(stop); }),
      thread_([this] { accept_all(); }) {}

Server::~Server() {
  static_cast<void>(::eventfd_write(stop_.get(), 1));
  thread_.join();
}

/// Now and then only, because that delays the device's work.
void Server::ask_device(const std::stop_token& stop) noexcept {
  constexpr std::chrono::milliseconds kLook{50};
  static_cast<void>(::pthread_setname_np(::pthread_self(), "device-asker"));
  while (!lost_.load() && wait_unless_stopped(stop, kLook)) lost_.store(backend_->is_lost());
}

/// Shows tenants that the process goes on, and looks whether the device does. Counts only time in which this thread
/// goes on: if the process is stopped for a while, the device has not been asked whether a batch is done.
void Server::watch(const std::stop_token& stop) noexcept {
  constexpr std::chrono::milliseconds kBeat{100}, kLongestLook{500};
  static_cast<void>(::pthread_setname_np(::pthread_self(), "watcher"));
  auto& pulse = *reinterpret_cast<Pulse*>(pulse_.part(0, sizeof(Pulse)).data());
  std::uint64_t oldest = 0;  // number of a batch
  steady_clock::duration on_device{};
  for (auto before = steady_clock::now(); wait_unless_stopped(stop, kBeat);) {
    pulse.beats.fetch_add(1, std::memory_order_relaxed);
    const auto now = steady_clock::now();
    const steady_clock::duration passed =
        std::min<steady_clock::duration>(now - std::exchange(before, now), kLongestLook);
    const auto batch = arbiter_.look([](const Scheduler& scheduler) { return scheduler.oldest(); });
    const std::uint64_t number = batch ? batch->number : 0;
    on_device = number == std::exchange(oldest, number) ? on_device + passed : steady_clock::duration{};
    if (!batch || on_device < settings_.longest_batch || hangs_.exchange(true)) continue;
    log_error("a batch of tenant {} has been on {} for more than {}", owner_of(*batch), backend_->device(),
              format_duration(settings_.longest_batch));
  }
}

/// For messages. A thread that the device holds up may have the list.
std::string Server::owner_of(const Scheduler::Oldest& batch) const {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return "(unknown)";
  const auto found =
      std::ranges::find_if(admitted_, [&](const Admitted& one) { return one.state->scheduled == batch.tenant; });
  return found == admitted_.end() ? "(unknown)" : fmt::format("{}, process {}", found->name, found->peer.pid);
}

void Server::accept_all() noexcept {
  const auto look = [this] {
    reap(/*all=*/false);
    watch_bounds();
    // They go on with their CPUs anyway, and come back when the device can be used again.
    if (is_lost()) stop_tenants();
  };
  ipc::accept_connections(listener_, stop_.get(), look,
                          [this](FileDescriptor socket) { accept_one(std::move(socket)); });
  reap(/*all=*/true);
}

void Server::accept_one(FileDescriptor socket) {
  const auto peer = peer_of(socket.get());
  const auto refuse = [&](const Error& why) {
    static_cast<void>(send_message(socket.get(), bytes_of(refusal(why)), {}, std::chrono::milliseconds{0}));
    ipc::close_foreign(std::move(socket));
  };
  if (!peer || !ipc::is_allowed(*peer, settings_.users, settings_.groups)) {
    log_warning("process {} of user {} may not use the proxy", peer ? peer->pid : 0, peer ? peer->uid : 0);
    return refuse(problem("this user may not use it", fmt::format("user {}", peer ? peer->uid : 0),
                          "one of those that `penstock proxy serve` allows (--allow-user, --allow-group)"));
  }
  if (connections_.size() >= kMostConnections) {
    log_warning("process {} of user {} is refused: there are {} connections", peer->pid, peer->uid,
                connections_.size());
    return refuse(problem("too many connections", std::to_string(connections_.size()),
                          fmt::format("fewer than {}", kMostConnections)));
  }
  const auto of_user = std::ranges::count(connections_, peer->uid, [](const Connection& c) { return c.peer.uid; });
  if (static_cast<std::size_t>(of_user) >= kMostConnections / 2) {
    log_warning("process {} of user {} is refused: the user has {} connections", peer->pid, peer->uid, of_user);
    return refuse(problem(fmt::format("too many connections of user {}", peer->uid), std::to_string(of_user),
                          fmt::format("fewer than {}", kMostConnections / 2)));
  }
  make_room();
  Connection& connection = connections_.emplace_back();
  connection.socket = std::move(socket);
  connection.peer = *peer;
  try {
    connection.thread = std::thread([this, &connection] { serve(connection); });
  } catch (const std::system_error&) {
    connections_.pop_back();
    throw;
  }
}

void Server::serve(Connection& connection) noexcept {
  static_cast<void>(::pthread_setname_np(::pthread_self(), "tenant"));
  const Peer peer = connection.peer;
  std::string why;
  try {
    Tenant tenant(std::move(connection.socket), peer, *backend_, arbiter_, grants_, *this);
    {
      const std::lock_guard lock(connection.mutex);
      if (!connection.stops) connection.tenant = &tenant;
    }
    if (connection.tenant != nullptr) why = tenant.serve();
    const std::lock_guard lock(connection.mutex);
    connection.tenant = nullptr;
  } catch (const std::exception& error) {
    why = error.what();
  }
  if (!why.empty()) log_warning("process {} of user {} loses the proxy: {}", peer.pid, peer.uid, printable(why));
  connection.ended.store(true);
}

void Server::reap(bool all) noexcept {
  // All at once, so that they end side by side.
  for (Connection& connection : connections_) {
    if (all) connection.stop();
  }
  for (auto connection = connections_.begin(); connection != connections_.end();) {
    if (!all && !connection->ended.load()) {
      ++connection;
      continue;
    }
    connection->thread.join();
    connection = connections_.erase(connection);
  }
}

void Server::stop_tenants() noexcept {
  for (Connection& connection : connections_) {
    if (!is_waiting(connection, /*stops=*/false)) connection.stop();
  }
}

void Server::Connection::stop() noexcept {
  const std::lock_guard lock(mutex);
  stops = true;
  if (tenant != nullptr) tenant->interrupt();
}

/// Whether it has no share, and nobody has stopped it. `stops`: stops it then, but none that has just got a share.
bool Server::is_waiting(Connection& connection, bool stops) noexcept {
  const std::lock_guard lock(connection.mutex);
  if (connection.stops || connection.ended.load()) return false;
  const std::lock_guard admitted_lock(mutex_);
  if (connection.tenant != nullptr &&
      std::ranges::find(admitted_, &connection.tenant->state(), &Admitted::state) != admitted_.end())
    return false;
  connection.stops = stops;
  if (stops && connection.tenant != nullptr) connection.tenant->interrupt();
  return true;
}

/// Connections that say nothing must keep nobody out: when there are many, the oldest of the user with the most of them
/// makes room for the next one.
void Server::make_room() {
  std::map<uid_t, std::vector<Connection*>> by_user;
  std::size_t count = 0;
  for (Connection& connection : connections_) {
    if (!is_waiting(connection, /*stops=*/false)) continue;
    by_user[connection.peer.uid].push_back(&connection);
    ++count;
  }
  if (count < kMostWaiting) return;
  const auto size = [](const auto& entry) { return entry.second.size(); };
  static_cast<void>(is_waiting(*std::ranges::max_element(by_user, {}, size)->second.front(), /*stops=*/true));
}

/// What is there, for a tenant for which there is no room: "lan 4q, wan 8q and 3 others".
std::string Server::tenants_text() const {
  constexpr std::size_t kMost = sizeof(Reply::found) - 50;  // a reply has room for them, and what is around them
  std::string text;
  for (std::size_t t = 0; t < admitted_.size(); ++t) {
    const std::string one = admitted_[t].name + " " + admitted_[t].quota.profile.name();
    if (text.size() + one.size() > kMost)
      return text + fmt::format(" and {}", format_count(admitted_.size() - t, "other"));
    if (!text.empty()) text += ", ";
    text += one;
  }
  return text.empty() ? "no tenants" : text;
}

Result<Quota> Server::admit(const Hello& hello, const Peer& peer, TenantState& tenant) {
  Quota quota;
  quota.profile = settings_.profile;
  if (!hello.profile.view().empty()) {
    const auto profile = Profile::named(hello.profile.view());
    if (!profile)
      return failure(problem("no such profile", in_quotes(hello.profile.view()), std::string(kProfileNames)));
    quota.profile = *profile;
  }
  if (is_lost())
    return failure(problem("the proxy has lost its device", backend_->device(), "its program to start again"));
  const std::lock_guard lock(mutex_);
  unsigned used = 0;
  unsigned of_user = 0;
  for (const Admitted& other : admitted_) {
    used += other.quota.profile.units;
    if (other.peer.uid == peer.uid) of_user += other.quota.profile.units;
  }
  if (used + quota.profile.units > Profile::kWhole) {
    const unsigned left = Profile::kWhole - used;
    return failure(problem(
        fmt::format("no room for a tenant of profile {}", quota.profile.name()),
        fmt::format("{} of 16 sixteenths in use ({})", used, tenants_text()),
        left == 0 ? "the end of a tenant" : fmt::format("at most profile {}", Profile{std::bit_floor(left)}.name())));
  }
  if (of_user + quota.profile.units > settings_.user_units)
    return failure(problem(fmt::format("no room for a tenant of profile {} of user {}", quota.profile.name(), peer.uid),
                           fmt::format("{} sixteenths in use by tenants of the user", of_user),
                           fmt::format("at most {} for each user", settings_.user_units)));
  const std::uint64_t most = quota.profile.memory(backend_->memory());
  if (hello.memory > most)
    return failure(problem(fmt::format("profile {} has less memory", quota.profile.name()), format_size(hello.memory),
                           fmt::format("at most {}", format_size(most))));
  if (hello.latency_us > kLongestLatencyUs)
    return failure(problem("a latency bound that is too long", fmt::format("{} us", hello.latency_us),
                           fmt::format("at most {} us", kLongestLatencyUs)));
  quota.latency = std::chrono::microseconds{hello.latency_us};
  quota.device_bytes = hello.memory == 0 ? most : hello.memory;
  quota.less_memory = quota.device_bytes < most;
  quota.host_bytes = settings_.host_bytes;
  quota.bytes_per_second = least_limit(hello.bytes_per_second, settings_.unit_bytes_per_second * quota.profile.units);
  quota.batches = least_limit(hello.batches, settings_.batches);
  if (auto given = give_multiprocessors(quota, tenant); !given) return failure(std::move(given.error()));
  tenant.scheduled = arbiter_.with([&](Scheduler& scheduler) {
    return scheduler.add({quota.profile.part(), quota.bytes_per_second, quota.batches, quota.latency, peer.uid,
                          settings_.user_bytes_per_second},
                         Arbiter::now());
  });
  admitted_.push_back({++last_number_, name_of(hello), label_of(hello), peer, quota, &tenant, steady_clock::now()});
  log_info("tenant {}: process {} of user {}, group {}, profile {}, {} of device memory", name_of(hello), peer.pid,
           peer.uid, peer.gid, quota.profile.name(), format_size(quota.device_bytes));
  if (quota.latency.count() > 0 && policy() != Policy::deadline)
    log_warning("tenant {} asks for a latency bound of {}, which only the scheduler deadline keeps; it is {}",
                name_of(hello), format_duration(quota.latency), kPolicyNames[static_cast<std::size_t>(policy())]);
  return quota;
}

Result<void> Server::give_multiprocessors(Quota& quota, TenantState& tenant) const {
  switch (settings_.multiprocessors) {
    case MultiprocessorShares::all: break;
    case MultiprocessorShares::blocks: {
      // Kernels are limited one by one, so what they fill together depends on how many run at a time.
      constexpr unsigned kBatches = 4;  // enough to copy in both directions while kernels run
      quota.multiprocessors = quota.profile.multiprocessors(backend_->multiprocessors());
      quota.batches = std::min(least_limit(quota.batches, kBatches), quota.multiprocessors);
      quota.multiprocessors_of_batch = quota.multiprocessors / quota.batches;
      break;
    }
    case MultiprocessorShares::green_contexts: try { tenant.part = backend_->take_part(quota.profile);
      } catch (const gpu::CudaError& error) {
        return failure(
            problem(fmt::format("no multiprocessors for a tenant of profile {}", quota.profile.name()), error.what()));
      }
      // Kernels of all its batches share them. This only says how many blocks are of use.
      quota.multiprocessors = quota.multiprocessors_of_batch = tenant.part->multiprocessors();
      break;
  }
  return {};
}

void Server::leave(TenantState& tenant, std::chrono::nanoseconds took) noexcept {
  arbiter_.with([&](Scheduler& scheduler) { scheduler.remove(tenant.scheduled); });
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(admitted_, &tenant, &Admitted::state);
  if (found == admitted_.end()) return;
  const TenantCounters& counters = tenant.counters;
  const auto duration = [](const std::atomic<std::uint64_t>& ns) {
    return format_duration(std::chrono::nanoseconds(ns.load()));
  };
  log_info(
      "tenant {}, process {}, has ended: {} batches, {} packets, {} to the device, {} to the host; attached in {} "
      "(memory {}, tables {}, lanes {}), released in {}",
      found->name, found->peer.pid, counters.batches.load(), counters.packets.load(),
      format_size(counters.to_device.load()), format_size(counters.to_host.load()), duration(counters.attach_ns),
      duration(counters.attach_memory_ns), duration(counters.attach_tables_ns), duration(counters.attach_lanes_ns),
      format_duration(took));
  ++detached_;
  detaching_ += took;
  admitted_.erase(found);
}

void Server::release_ended_stages() noexcept {
  const std::lock_guard lock(mutex_);
  for (const Admitted& tenant : admitted_) tenant.state->stages.release_ended();
}

/// Says once of each tenant that its bound does not hold.
void Server::watch_bounds() {
  constexpr unsigned kLooks = 3;  // the first measurements are not exact
  if (policy() != Policy::deadline) return;
  const std::lock_guard lock(mutex_);
  for (Admitted& tenant : admitted_) {
    if (tenant.warned) continue;
    const Scheduler::Bound bound = bound_of(tenant);
    tenant.missed = bound.holds ? 0 : tenant.missed + 1;
    if (tenant.missed < kLooks) continue;
    tenant.warned = true;
    log_warning(
        "tenant {}: its latency bound of {} cannot hold: {}", tenant.name, format_duration(tenant.quota.latency),
        !std::isinf(bound.needed) ? fmt::format("it needs {:.0f} % of the device, and {:.0f} % are reserved for it",
                                                bound.needed * 100, bound.share * 100)
        : 2 * bound.blocked > tenant.quota.latency
            ? fmt::format("batches of other tenants take up to {} on the device", format_duration(bound.blocked))
            : "its own batches take longer");
  }
}

Scheduler::Bound Server::bound_of(const Admitted& tenant) const {
  return arbiter_.look([&](const Scheduler& scheduler) { return scheduler.bound_of(tenant.state->scheduled); });
}

std::string Server::status(bool prometheus) const {
  const Policy now = policy();
  const std::lock_guard lock(mutex_);
  return prometheus ? status_prometheus(now) : status_json(now);
}

std::string Server::status_prometheus(Policy policy) const {
  std::string text =
      fmt::format("# TYPE penstock_proxy_device_lost gauge\npenstock_proxy_device_lost {}\n", is_lost() ? 1 : 0);
  text += fmt::format("# TYPE penstock_proxy_restarts_total counter\npenstock_proxy_restarts_total {}\n", restarts_);
  text += fmt::format("# TYPE penstock_proxy_detached_total counter\npenstock_proxy_detached_total {}\n", detached_);
  text += fmt::format("# TYPE penstock_proxy_detach_seconds_total counter\npenstock_proxy_detach_seconds_total {}\n",
                      std::chrono::duration<double>(detaching_).count());
  const auto add_if = [&](auto has_it, std::string_view name, std::string_view type, auto value) {
    text += fmt::format("# TYPE penstock_proxy_{} {}\n", name, type);
    for (const Admitted& tenant : admitted_) {
      if (!has_it(tenant)) continue;
      text += fmt::format("penstock_proxy_{}{{tenant={},pid=\"{}\",number=\"{}\",profile=\"{}\"}} {}\n", name,
                          tenant.label, tenant.peer.pid, tenant.number, tenant.quota.profile.name(), value(tenant));
    }
  };
  const auto add = [&](std::string_view name, std::string_view type, auto value) {
    add_if([](const Admitted&) { return true; }, name, type, value);
  };
  const auto count = [&](std::string_view name, std::string_view type, auto counter) {
    add(name, type, [counter](const Admitted& tenant) { return (tenant.state->counters.*counter).load(); });
  };
  const auto seconds = [&](std::string_view name, auto counter, std::string_view type = "counter") {
    add(name, type, [counter](const Admitted& tenant) {
      return static_cast<double>((tenant.state->counters.*counter).load()) / 1e9;
    });
  };
  const std::vector<Batches> counted = count_batches();
  const auto batches_of = [&](const Admitted& tenant) -> const Batches& {
    return counted[static_cast<std::size_t>(&tenant - admitted_.data())];
  };
  add("batches_total", "counter", [&](const Admitted& tenant) { return batches_of(tenant).all; });
  count("packets_total", "counter", &TenantCounters::packets);
  count("to_device_bytes_total", "counter", &TenantCounters::to_device);
  count("to_host_bytes_total", "counter", &TenantCounters::to_host);
  seconds("waiting_seconds_total", &TenantCounters::waiting_ns);
  seconds("device_seconds_total", &TenantCounters::device_ns);
  seconds("charged_seconds_total", &TenantCounters::charged_ns);
  seconds("transfer_seconds_estimate_total", &TenantCounters::transfer_ns);
  seconds("kernel_seconds_estimate_total", &TenantCounters::kernel_ns);
  count("failures_total", "counter", &TenantCounters::failures);
  add("late_batches_total", "counter", [&](const Admitted& tenant) { return batches_of(tenant).late; });
  count("table_updates_total", "counter", &TenantCounters::table_updates);
  count("batches_in_flight", "gauge", &TenantCounters::in_flight);
  count("device_memory_bytes", "gauge", &TenantCounters::device_bytes);
  count("host_memory_bytes", "gauge", &TenantCounters::host_bytes);
  add("attach_seconds", "gauge", [](const Admitted& tenant) {
    const std::uint64_t ns = tenant.state->counters.attach_ns.load();
    return ns == 0 ? "NaN" : fmt::to_string(static_cast<double>(ns) / 1e9);
  });
  seconds("attach_memory_seconds", &TenantCounters::attach_memory_ns, "gauge");
  seconds("attach_tables_seconds", &TenantCounters::attach_tables_ns, "gauge");
  seconds("attach_lanes_seconds", &TenantCounters::attach_lanes_ns, "gauge");
  if (settings_.multiprocessors != MultiprocessorShares::all)
    add("multiprocessors", "gauge", [](const Admitted& tenant) { return tenant.quota.multiprocessors; });
  if (policy != Policy::deadline) return text;
  const auto has_bound = [](const Admitted& tenant) { return tenant.quota.latency.count() > 0; };
  add_if(has_bound, "latency_bound_seconds", "gauge",
         [](const Admitted& tenant) { return std::chrono::duration<double>(tenant.quota.latency).count(); });
  add_if(has_bound, "reserved_ratio", "gauge", [&](const Admitted& tenant) { return bound_of(tenant).share; });
  add_if(has_bound, "needed_ratio", "gauge", [&](const Admitted& tenant) {
    const double needed = bound_of(tenant).needed;
    return std::isinf(needed) ? "+Inf" : fmt::to_string(needed);
  });
  add_if(has_bound, "bound_holds", "gauge", [&](const Admitted& tenant) { return bound_of(tenant).holds ? 1 : 0; });
  return text;
}

std::vector<Server::Batches> Server::count_batches() const {
  return arbiter_.look([&](const Scheduler&) {
    std::vector<Batches> counted;
    for (const Admitted& tenant : admitted_)
      counted.push_back({tenant.state->counters.batches.load(), tenant.state->counters.late.load()});
    return counted;
  });
}

std::string Server::status_json(Policy policy) const {
  const auto seconds = [](const std::atomic<std::uint64_t>& ns) { return static_cast<double>(ns.load()) / 1e9; };
  const auto us = [](std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e3; };
  Json tenants = Json::array();
  const std::vector<Batches> counted = count_batches();
  for (const Admitted& tenant : admitted_) {
    const TenantCounters& counters = tenant.state->counters;
    const Batches& batches = counted[static_cast<std::size_t>(&tenant - admitted_.data())];
    Json json{{"name", tenant.name},
              {"number", tenant.number},
              {"pid", tenant.peer.pid},
              {"user", tenant.peer.uid},
              {"group", tenant.peer.gid},
              {"profile", tenant.quota.profile.name()},
              {"seconds", std::chrono::duration<double>(steady_clock::now() - tenant.since).count()},
              {"batches", batches.all},
              {"packets", counters.packets.load()},
              {"bytes_to_device", counters.to_device.load()},
              {"bytes_to_host", counters.to_host.load()},
              {"waiting_seconds", seconds(counters.waiting_ns)},
              {"device_seconds", seconds(counters.device_ns)},
              {"charged_seconds", seconds(counters.charged_ns)},
              {"transfer_seconds_estimate", seconds(counters.transfer_ns)},
              {"kernel_seconds_estimate", seconds(counters.kernel_ns)},
              {"latency_p99_us", us(counters.latencies.quantile(0.99))},
              {"failures", counters.failures.load()},
              {"table_updates", counters.table_updates.load()},
              {"batches_in_flight", counters.in_flight.load()},
              {"device_memory", counters.device_bytes.load()},
              {"device_memory_most", tenant.quota.device_bytes},
              {"host_memory", counters.host_bytes.load()},
              {"attach_ms", nullptr},
              {"attach_parts",
               {{"memory_ms", seconds(counters.attach_memory_ns) * 1e3},
                {"tables_ms", seconds(counters.attach_tables_ns) * 1e3},
                {"lanes_ms", seconds(counters.attach_lanes_ns) * 1e3}}}};
    if (const std::uint64_t ns = counters.attach_ns.load(); ns != 0) json["attach_ms"] = static_cast<double>(ns) / 1e6;
    if (tenant.quota.batches != 0) json["batches_most"] = tenant.quota.batches;
    if (tenant.quota.bytes_per_second != 0) json["bytes_per_second_most"] = tenant.quota.bytes_per_second;
    if (tenant.quota.multiprocessors > 0) json["multiprocessors_most"] = tenant.quota.multiprocessors;
    if (tenant.quota.latency.count() > 0) {
      json["latency_bound_us"] = us(tenant.quota.latency);
      json["late_batches"] = batches.late;
    }
    if (tenant.quota.latency.count() > 0 && policy == Policy::deadline) {
      const Scheduler::Bound bound = bound_of(tenant);
      json["bound_holds"] = bound.holds;
      json["reserved"] = bound.share;
      json["needed"] = std::isinf(bound.needed) ? Json(nullptr) : Json(bound.needed);
    }
    tenants.push_back(std::move(json));
  }
  const Json json{{"device", backend_->device()},
                  {"device_lost", is_lost()},
                  {"device_memory", backend_->memory()},
                  {"multiprocessors", backend_->multiprocessors()},
                  {"multiprocessor_shares", name_of(settings_.multiprocessors)},
                  {"scheduler", kPolicyNames[static_cast<std::size_t>(policy)]},
                  {"restarts", restarts_},
                  {"detached", detached_},
                  {"detach_seconds", std::chrono::duration<double>(detaching_).count()},
                  {"tenants", std::move(tenants)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

constexpr std::chrono::seconds kLongestAnswer{10};

Result<Received> ask(const std::string& path, std::span<const std::byte> message, std::size_t most_bytes) {
  auto socket = ipc::connect_to(path, kService);
  if (!socket) return failure(std::move(socket.error()));
  auto answer = ipc::exchange(socket->get(), message, {}, most_bytes, kLongestAnswer);
  if (!answer) return failure(no_answer(path, errno));
  const auto reply = ipc::message_of<Reply>(answer->bytes);
  // Otherwise it is what was asked for. A text does not begin with such a number.
  if (reply && (reply->failed == Reply::kRefused || reply->failed == Reply::kOtherVersion))
    return failure(error_of(path, *reply));
  return std::move(*answer);
}

}  // namespace

Result<std::string> ask_for_status(const std::string& path, bool prometheus) {
  StatusRequest request;
  request.prometheus = prometheus ? 1 : 0;
  auto answer = ask(path, bytes_of(request), kMostStatusBytes);
  if (!answer) return failure(std::move(answer.error()));
  return std::string(reinterpret_cast<const char*>(answer->bytes.data()), answer->bytes.size());
}

Result<void> ask_for_policy(const std::string& path, Policy policy) {
  SetPolicy request;
  request.policy = static_cast<std::uint32_t>(policy);
  auto answer = ask(path, bytes_of(request), sizeof(Reply));
  if (!answer) return failure(std::move(answer.error()));
  const auto reply = ipc::message_of<Reply>(answer->bytes);
  if (reply && reply->failed == 0) return {};
  return failure(Error{{path, 0, 0},
                       "not an answer of a proxy",
                       std::to_string(answer->bytes.size()) + " bytes",
                       "one of `penstock proxy serve`"});
}

}  // namespace penstock::proxy
