// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The network function `router`: forwards IPv4 and IPv6 packets by longest prefix match.
//
// It has two sides. The workers' stages see an immutable snapshot of the tables, and take the newest one at a batch
// boundary. The control side knows the next hops. It holds a mutex that neither packets nor reports wait for, turns
// changes into edits, applies them to the copy that no one reads, publishes it, and then applies them to the other copy
// (left-right). Devices have copies of their own, which follow the host's.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "function/network_function.h"
#include "function/port_addresses.h"
#include "function/route_source.h"
#include "function/snapshot.h"
#include "gpu/per_device.h"
#include "nf/router/device_tables.h"
#include "nf/router/devices.h"
#include "nf/router/fib.h"
#include "nf/router/neighbour_reader.h"
#include "nf/router/next_hop_table.h"
#include "nf/router/route_table.h"
#include "nf/router/router_tables.h"
#include "nf/router/table_source.h"

namespace penstock::router {

struct RouterConfig {
  Fib4Engine engine = Fib4Engine::kDir24;
  CheckRules rules;
  Devices devices;                       // the chain's ports
  RouteTable routes;                     // through these devices
  std::optional<Neighbours> neighbours;  // empty: frames keep their destination MAC
  std::vector<EgressPort> ports;         // by PortIndex, one for each device
  FromKernel from_kernel;                // what a TableSource provides; `routes` and `neighbours` are empty then
  std::vector<function::PortAddresses> addresses{};  // by PortIndex: the router's own, from which ICMP errors come
  std::vector<bool> own_macs;                        // by port: the user has given its source MAC. Empty: none
};

/// A set of changes, in the order in which they are applied.
struct RouterChange {
  bool replaces_routes = false;  // all routes that are not in `routes` are erased
  bool replaces_neighbours = false;
  NeighbourKeys erase_neighbours;
  std::vector<Neighbour> neighbours;  // added or updated
  NeighbourKeys failed;               // unreachable: packets that are held for these are dropped
  std::vector<Ipv4Prefix> erase4;     // ignored if there is no such route
  std::vector<Ipv6Prefix> erase6;
  RouteTable routes;                                   // added, or replace the prefix's route
  std::vector<std::pair<PortIndex, MacAddress>> macs;  // source MACs of ports that have one
};

class Router final : public function::NetworkFunction, public function::RouteSource {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Router>> build(RouterConfig config);
  ~Router() override;

  [[nodiscard]] const function::NfTraits& traits() const noexcept override { return traits_; }
  [[nodiscard]] std::unique_ptr<function::CpuStage> make_cpu_stage() override;
  [[nodiscard]] std::unique_ptr<DeviceStage> make_device_stage(function::Processor processor,
                                                               const StageUse& use) override;
  /// Of the newest tables: it does not follow updates, which recipe_version() counts.
  [[nodiscard]] std::optional<function::StageRecipe> stage_recipe(function::Processor processor) const override;
  [[nodiscard]] std::optional<std::uint64_t> recipe_version() const noexcept override {
    return recipe_version_.load(std::memory_order_acquire);
  }
  /// "12 IPv4 routes added, 3 removed, 1 changed, 1 neighbour added"
  [[nodiscard]] Result<std::string> changes_from(const function::NetworkFunction& running) const override;
  /// Fails if its tables are to come from outside and nothing provides them.
  [[nodiscard]] Result<void> begin_run() override;
  /// Joins the predecessor's TableSource, if it has one. There is no other state to take over. The predecessor keeps
  /// its tables, as updated, to take its place back.
  [[nodiscard]] Result<void> take_over(function::NetworkFunction& predecessor) override;
  /// Frees the predecessor's tables on devices. It leaves its source.
  void predecessor_ended() noexcept override;
  [[nodiscard]] std::optional<function::Explanation> explain(PacketView packet) const override;
  [[nodiscard]] std::string description() const override;
  void report(nlohmann::json& into) const override;

  [[nodiscard]] std::unique_ptr<function::RouteReader> read_routes() override;

  /// The tables, for readers other than the stages.
  [[nodiscard]] function::Snapshot<RouterTables>& tables() noexcept { return snapshot_; }
  [[nodiscard]] CheckRules rules() const noexcept { return rules_; }

  [[nodiscard]] const FromKernel& from_kernel() const noexcept { return from_kernel_; }
  /// The source for this router and those that take its place, before the run begins. It outlives their stages; and
  /// themselves, unless it is taken away (null).
  void set_source(TableSource* source) noexcept { source_ = source; }
  /// What the user has mapped an interface to; kNoPort: to no port.
  [[nodiscard]] std::optional<PortIndex> port_of(std::string_view interface) const { return devices_.known(interface); }
  [[nodiscard]] const Devices& devices() const noexcept { return devices_; }
  /// Whether the packets that leave by this port get the MAC of its interface.
  [[nodiscard]] bool takes_mac(PortIndex port) const noexcept;
  /// Whether the kernel is asked for neighbours that are missing.
  [[nodiscard]] bool asks_for_neighbours() const noexcept { return from_kernel_.neighbours && source_ != nullptr; }

  /// Applies a change. Packets of batches that begin after it returns are forwarded by the changed tables; no packet
  /// sees a partial change. After an error, or std::bad_alloc, nothing has changed. If the tables cannot be copied to a
  /// device, it refuses its batches until a later update succeeds there. Waits for batch boundaries of workers and
  /// stages, so it must not be called from their threads.
  [[nodiscard]] Result<void> update(const RouterChange& change);

 private:
  Router(RouterConfig config, std::unique_ptr<const RouterTables> tables);

  /// What reports contain, as of the last completed update.
  struct Loaded {
    std::size_t routes4 = 0, bytes4 = 0;
    std::size_t routes6 = 0, bytes6 = 0;
    std::size_t groups = 0, hop_bytes = 0, neighbours = 0;
    std::array<std::size_t, kRouteKinds> routes_by_kind{};
  };

  // The steps of `update`, in this order, called with updates_ held.
  void plan(const RouterChange& change, const RouterTables& tables, TableEdit& edit);
  void discard(const TableEdit& edit) noexcept;
  void commit(const TableEdit& edit, std::span<const std::uint32_t> replaced) noexcept;
  void publish(std::unique_ptr<RouterTables> tables, const TableEdit& edit, const RouterChange& change);
  void count_loaded();
  void follow(std::unique_ptr<const RouterTables> before, const TableEdit& edit, const RouterChange& change);
  void follow_on_devices() noexcept;
  [[nodiscard]] Loaded loaded() const;
  [[nodiscard]] std::vector<EgressPort> given_macs() const;

  function::NfTraits traits_;
  CheckRules rules_;
  const std::vector<function::PortAddresses> addresses_;
  Devices devices_;
  FromKernel from_kernel_;
  std::vector<bool> own_macs_;
  TableSource* source_ = nullptr;

  Fib4Engine engine_;
  bool has_neighbours_;

  mutable std::mutex updates_;  // serialises updates, including their wait for the workers; guards the next two members
  NextHopTable next_hops_;
  std::unique_ptr<RouterTables> shadow_;               // equal to the newest tables; made at the first update
  mutable function::Snapshot<RouterTables> snapshot_;  // explanations read it too

  std::atomic<std::uint64_t> recipe_version_{0};

  gpu::PerDevice<DeviceSide> on_devices_;

  Router* predecessor_ = nullptr;  // whose stages may still run

  mutable std::mutex loaded_mutex_;  // only held while copying; guards loaded_
  Loaded loaded_;
};

/// For the catalog.
[[nodiscard]] const function::NfKind& router_kind();

}  // namespace penstock::router
