// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Keeps a router's tables as the kernel's are, in a thread of its own:
//
//     subscribe ─▶ read all ─▶ messages in their order ─▶ what has changed ─▶ Router::update, every 20 ms at most
//                     ▲                │ lost, or the kernel has removed something silently
//                     └────────────────┘
//
// It also asks the kernel for the neighbours that packets lack, and keeps those in use from growing stale: the kernel
// does not see the packets that we send to them. All rates are bounded.

#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "control/kernel/kernel_neighbours.h"
#include "control/kernel/kernel_routes.h"
#include "control/kernel/route_socket.h"
#include "nf/router/missing_neighbours.h"
#include "nf/router/router.h"
#include "nf/router/table_source.h"
#include "port/stop_event.h"
#include "run/chain.h"

namespace penstock::control {

class TableFollower final : public router::TableSource {
 public:
  /// Becomes the source of `router`, a function of the chain, and fills its tables. Needs CAP_NET_ADMIN to ask for
  /// neighbours; the thread keeps that.
  [[nodiscard]] static Result<std::unique_ptr<TableFollower>> open(const run::Chain& chain, router::Router& router);
  /// All stages of its routers must have ended.
  ~TableFollower() override;
  TableFollower(const TableFollower&) = delete;
  TableFollower& operator=(const TableFollower&) = delete;

  Result<void> join(router::Router& router) override;
  void leave(router::Router& router) noexcept override;
  router::MissingNeighbours& missing() noexcept override { return missing_; }
  void report(nlohmann::json& into) const override;

 private:
  using Clock = std::chrono::steady_clock;

  TableFollower(const run::Chain& chain, const router::FromKernel& from);
  [[nodiscard]] Result<void> open_sockets(const run::Chain& chain);

  void run();
  [[nodiscard]] bool has_changes() const;
  [[nodiscard]] int time_to_wait_ms(Clock::time_point now) const;
  void read_changes();
  void apply(std::span<const std::uint8_t> messages);
  void apply(const KernelMessage& message);
  void follow_table();
  [[nodiscard]] Result<void> read_all();
  [[nodiscard]] Result<void> read_all_of(std::uint16_t type, std::uint8_t family, bool& interrupted);
  void read_all_again(Clock::time_point now);
  void use_mapping_of(const router::Router& router);
  [[nodiscard]] PortIndex port_of(const std::string& interface) const;
  void publish();
  [[nodiscard]] std::vector<std::pair<PortIndex, MacAddress>> macs() const;
  [[nodiscard]] Result<void> fill(router::Router& router);
  [[nodiscard]] static Result<void> update(router::Router& router, const router::RouterChange& change);
  void ask_for_missing();
  void keep_alive();
  [[nodiscard]] bool may_ask(const Ipv6Address& address, std::uint32_t interface);
  void ask(const Ipv6Address& address, std::uint32_t interface);
  void find_interfaces();
  void sum_up();
  [[nodiscard]] std::string table_text() const;

  const router::FromKernel from_;
  std::vector<std::string> interfaces_;  // by port: the interface that it is on; "": none
  std::vector<std::string> ports_;       // their names
  RouteSocket changes_, dumps_, requests_;
  router::MissingNeighbours missing_;
  port::StopEvent stop_;

  mutable std::mutex mutex_;                 // guards the following members
  std::vector<router::Router*> routers_;     // the newest one last
  const router::Router* mapping_ = nullptr;  // the router whose user has mapped interfaces to ports
  KernelRoutes routes_;
  KernelNeighbours neighbours_;
  std::vector<std::uint32_t> interface_of_;  // by port; 0: none
  std::vector<std::pair<PortIndex, MacAddress>> published_macs_;
  bool in_step_ = false;  // the last reading of all tables has succeeded
  bool links_changed_ = false;
  bool must_fill_ = false;  // an update has failed
  std::uint32_t vrf_table_ = 0;
  Clock::time_point next_publish_{}, next_reading_{}, next_keep_alive_{};
  double may_ask_ = kMostAtOnce;  // requests
  Clock::time_point asked_at_{};
  struct Asked {
    Ipv6Address address;
    std::uint32_t interface = 0;
    Clock::time_point at{};
  };
  std::array<Asked, 1024> asked_{};  // by hash
  struct Counts {
    std::uint64_t messages = 0, malformed = 0, unsupported = 0, updates = 0, readings = 0, losses = 0, asked = 0;
  } counts_;
  std::string last_error_;

  /// For reports, which do not wait for the routers.
  struct Summary {
    Counts counts;
    std::size_t routes = 0, neighbours = 0, left_out = 0;
    std::string error;
  };
  bool was_empty_ = false;            // without routes
  mutable std::mutex summary_mutex_;  // guards the next member; held only while copying
  Summary summary_;

  static constexpr double kMostAtOnce = 128;
  std::thread thread_;  // the last member: it uses the others
};

/// Warnings about routers that ask the kernel for missing neighbours but cannot hold packets meanwhile.
[[nodiscard]] Errors holding_cautions(const run::Chain& chain);

/// For all routers of the chain whose tables come from the kernel, before the run begins.
[[nodiscard]] Result<std::vector<std::unique_ptr<TableFollower>>> follow_kernel(const run::Chain& chain);

}  // namespace penstock::control
