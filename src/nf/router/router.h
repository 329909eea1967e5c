// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The network function `router`: forwards IPv4 and IPv6 packets by longest prefix match.
//
// Two sides. The workers' stages see an immutable snapshot of the tables and take the newest at a batch boundary. The
// control side, under a mutex that no packet waits for, knows the routes and next hops by name; it turns changes into
// edits, applies them to the copy that nobody reads, publishes it, and applies them to the other (left-right).

#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "chain/network_function.h"
#include "chain/snapshot.h"
#include "nf/router/devices.h"
#include "nf/router/fib.h"
#include "nf/router/neighbour_reader.h"
#include "nf/router/rib.h"
#include "nf/router/route_table.h"
#include "nf/router/router_tables.h"

namespace penstock::router {

struct RouterConfig {
  Fib4Engine engine = Fib4Engine::kDir24;
  CheckRules rules;
  Devices devices;                       // the chain's ports
  RouteTable routes;                     // of those devices
  std::optional<Neighbours> neighbours;  // none: frames keep their destination MAC
  std::vector<EgressPort> ports;         // by PortIndex, one for each of the devices
};

/// What changes, in the order in which it is done. Nothing else does.
struct RouterChange {
  std::vector<std::pair<Ipv6Address, PortIndex>> erase_neighbours;
  std::vector<Neighbour> neighbours;  // added, or given a new MAC
  std::vector<Ipv4Prefix> erase4;     // where there is no such route, nothing is done
  std::vector<Ipv6Prefix> erase6;
  RouteTable routes;  // added, or put in the place of the prefix's route
};

class Router final : public chain::NetworkFunction {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Router>> build(RouterConfig config);

  [[nodiscard]] const chain::NfTraits& traits() const noexcept override { return traits_; }
  [[nodiscard]] std::unique_ptr<chain::CpuStage> make_cpu_stage() override;
  [[nodiscard]] std::string description() const override;
  void report(nlohmann::json& into) const override;
  /// For the stages' traces. While an update waits for the workers it only says so, since it must not wait for one.
  [[nodiscard]] std::string explain(PacketView packet) const;

  /// Packets of batches that begin after this returns are forwarded by the changed tables; no packet sees half of the
  /// change. After an error all is as it was. Waits for the workers' batch boundaries. Any thread but theirs.
  [[nodiscard]] Result<void> update(const RouterChange& change);

 private:
  Router(RouterConfig config, std::unique_ptr<const RouterTables> tables);

  // Of `update`, in this order, with the mutex held.
  [[nodiscard]] TableEdit plan(const RouterChange& change, RouterTables& tables);
  void commit(const TableEdit& edit);
  void discard(const TableEdit& edit);
  void publish(std::unique_ptr<RouterTables> tables, const TableEdit& edit, const RouterChange& change);

  [[nodiscard]] std::string explain_route(PacketView packet, std::uint32_t group, const std::string& prefix) const;

  chain::NfTraits traits_;
  CheckRules rules_;
  Devices devices_;

  mutable std::mutex mutex_;  // guards what follows, and publishing
  NextHopTable next_hops_;
  Rib<Ipv4Prefix> rib4_;
  Rib<Ipv6Prefix> rib6_;
  std::unique_ptr<RouterTables> shadow_;  // equal to the newest; made at the first update
  chain::Snapshot<RouterTables> snapshot_;
};

/// The catalog's line.
[[nodiscard]] const chain::NfKind& router_kind();

}  // namespace penstock::router
