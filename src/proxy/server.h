// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The execution proxy (Gaviss §3.2): one process that owns a device for several tenants. A thread accepts connections;
// each has a thread of its own (tenant.h), and so has each worker of a tenant (lane_worker.h).

#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "proxy/backend.h"
#include "proxy/protocol.h"
#include "proxy/restart.h"
#include "proxy/scheduler.h"
#include "proxy/served_lane.h"
#include "proxy/table_grants.h"
#include "proxy/tenant.h"

namespace penstock::proxy {

struct ServerSettings {
  std::string path;
  mode_t mode = 0660;
  Policy policy = Policy::weighted;
  Scheduler::Device device;
  Profile profile;                                    // of tenants that ask for none
  std::uint64_t host_bytes = std::uint64_t{4} << 30;  // that a tenant may let the device access
  unsigned batches = 0;                               // of a tenant on the device; 0: no limit
  MultiprocessorShares multiprocessors = MultiprocessorShares::all;
  std::chrono::nanoseconds longest_batch = std::chrono::seconds{30};  // if one takes longer, the device hangs
  unsigned user_units = Profile::kWhole;                              // sixteenths of a user's tenants together
  // Most bytes per second to and from the device, both together; 0: no limit.
  std::uint64_t unit_bytes_per_second = 0;  // for each sixteenth that a tenant has
  std::uint64_t user_bytes_per_second = 0;  // of a user's tenants together
  // Who may connect besides root and the proxy's own user. Both empty: everybody who may write to the socket.
  std::vector<uid_t> users;
  std::vector<gid_t> groups;
};

class Server final : private Admission {
 public:
  /// Listens when it returns. Throws std::system_error if there are no threads.
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(ServerSettings settings, std::unique_ptr<Backend> backend,
                                                             Inheritance inherited = {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  /// Ends all tenants.
  ~Server() override;

  /// Whether the device is lost: nothing can be run any more. Asks nobody, so it never waits.
  [[nodiscard]] bool is_lost() const noexcept { return lost_.load() || hangs(); }
  /// Whether that is because it hangs, so that the end of a tenant may never come.
  [[nodiscard]] bool hangs() const noexcept { return hangs_.load(); }
  [[nodiscard]] std::string status(bool prometheus) const override;
  [[nodiscard]] int pulse_file() const noexcept override { return pulse_.fd(); }

  // What is passed on if the program is executed anew (restart.h).

  [[nodiscard]] std::string device() const { return backend_->device(); }
  [[nodiscard]] const Listener& listener() const noexcept { return listener_; }
  [[nodiscard]] Policy policy() const {
    return arbiter_.look([](const Scheduler& scheduler) { return scheduler.policy(); });
  }
  [[nodiscard]] std::uint64_t restarts() const noexcept { return restarts_; }
  [[nodiscard]] unsigned restarts_in_a_row() const noexcept { return restarts_in_a_row_; }

 private:
  static constexpr std::size_t kMostConnections = 256;
  static constexpr std::size_t kMostWaiting = 64;  // connections without `hello`

  struct Connection {
    FileDescriptor socket;
    Peer peer;
    std::atomic<bool> ended{false};
    std::mutex mutex;          // guards the next two members
    Tenant* tenant = nullptr;  // while it is served
    bool stops = false;        // it is not to be served any more
    void stop() noexcept;
    std::thread thread;
  };
  /// A tenant that has been admitted.
  struct Admitted {
    std::uint64_t number = 0;  // from 1 on, never used again
    std::string name;
    std::string label;  // the name for Prometheus, with its quotes
    Peer peer;
    Quota quota;
    TenantState* state = nullptr;
    std::chrono::steady_clock::time_point since;
    unsigned missed = 0;  // times in a row that its bound was found not to hold
    bool warned = false;  // of that
  };

  Server(ServerSettings settings, std::unique_ptr<Backend> backend, Listener listener, const Inheritance& inherited);
  Result<Quota> admit(const Hello& hello, const Peer& peer, TenantState& tenant) override;
  [[nodiscard]] Result<void> give_multiprocessors(Quota& quota, TenantState& tenant) const;
  void leave(TenantState& tenant, std::chrono::nanoseconds took) noexcept override;
  void release_ended_stages() noexcept override;
  void accept_all() noexcept;
  void accept_one(FileDescriptor socket);
  void make_room();
  [[nodiscard]] bool is_waiting(Connection& connection, bool stops) noexcept;
  void serve(Connection& connection) noexcept;
  void reap(bool all) noexcept;
  void stop_tenants() noexcept;
  [[nodiscard]] std::string tenants_text() const;
  void watch_bounds();
  void ask_device(const std::stop_token& stop) noexcept;
  void watch(const std::stop_token& stop) noexcept;
  [[nodiscard]] std::string owner_of(const Scheduler::Oldest& batch) const;
  [[nodiscard]] Scheduler::Bound bound_of(const Admitted& tenant) const;
  struct Batches {
    std::uint64_t all = 0;
    std::uint64_t late = 0;
  };
  /// Of all that are admitted, in their order, at one moment. Called with `mutex_`.
  [[nodiscard]] std::vector<Batches> count_batches() const;
  [[nodiscard]] std::string status_json(Policy policy) const;
  [[nodiscard]] std::string status_prometheus(Policy policy) const;

  const ServerSettings settings_;
  const std::unique_ptr<Backend> backend_;
  std::atomic<bool> lost_{false};
  std::atomic<bool> hangs_{false};
  const SharedFile pulse_{sizeof(Pulse), /*sealed=*/true};
  Listener listener_;
  const std::uint64_t restarts_;
  const unsigned restarts_in_a_row_;
  Arbiter arbiter_;
  TableGrants grants_;
  mutable std::mutex mutex_;  // guards the next four members
  std::vector<Admitted> admitted_;
  std::uint64_t last_number_ = 0;
  std::uint64_t detached_ = 0;            // tenants that have ended
  std::chrono::nanoseconds detaching_{};  // the time that it took to release what they had
  std::list<Connection> connections_;     // of the accepting thread
  FileDescriptor stop_;                   // an eventfd
  // The device's driver may hold up the first one, and the threads of tenants, but not the second one.
  std::jthread device_asker_;
  std::jthread watcher_;
  std::thread thread_;  // last: uses all others
};

/// Ask the proxy at `path`.
[[nodiscard]] Result<std::string> ask_for_status(const std::string& path, bool prometheus);
[[nodiscard]] Result<void> ask_for_policy(const std::string& path, Policy policy);

}  // namespace penstock::proxy
