// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// One tenant: a connection, and all that it has made. Belongs to the thread that serves the connection.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/error.h"
#include "proxy/lane_worker.h"
#include "proxy/profile.h"
#include "proxy/protocol.h"
#include "proxy/table_grants.h"
#include "proxy/tenant_state.h"

namespace penstock::proxy {

/// What a tenant may have.
struct Quota {
  Profile profile;
  std::uint64_t device_bytes = 0;
  bool less_memory = false;            // on the device than its profile has: the tenant has asked for that
  std::uint64_t host_bytes = 0;        // that the device can access
  std::uint64_t bytes_per_second = 0;  // 0: no limit
  unsigned batches = 0;                // in flight; 0: no limit
  std::chrono::nanoseconds latency{};  // bound; 0: none
  // That kernels may fill, of all batches together and of one, as in StageUse; 0: all.
  std::uint32_t multiprocessors = 0;
  std::uint32_t multiprocessors_of_batch = 0;
};

/// Of all tenants: which are admitted. Thread-safe.
class Admission {
 public:
  virtual ~Admission() = default;
  /// An error says why there is no room. Until `leave`, the quota is the tenant's.
  [[nodiscard]] virtual Result<Quota> admit(const Hello& hello, const Peer& peer, TenantState& tenant) = 0;
  /// `took`: to release what the tenant had.
  virtual void leave(TenantState& tenant, std::chrono::nanoseconds took) noexcept = 0;
  /// Tables have ended that stages of any tenant may use (StagePool::release_ended).
  virtual void release_ended_stages() noexcept = 0;
  /// JSON, or for Prometheus.
  [[nodiscard]] virtual std::string status(bool prometheus) const = 0;
  /// The file of the proxy's pulse.
  [[nodiscard]] virtual int pulse_file() const noexcept = 0;
};

class Tenant {
 public:
  /// Borrows all but the socket.
  Tenant(FileDescriptor socket, const Peer& peer, const Backend& backend, Arbiter& arbiter, TableGrants& grants,
         Admission& admission);
  Tenant(const Tenant&) = delete;
  Tenant& operator=(const Tenant&) = delete;
  /// Ends everything that it has on the device, and waits for batches of others that use its tables.
  ~Tenant();

  /// Serves the connection until the tenant goes, breaks the protocol or is ended. Why it ended; "": it has gone.
  [[nodiscard]] std::string serve();
  [[nodiscard]] TenantState& state() noexcept { return state_; }
  /// From another thread: `serve` returns soon.
  void interrupt() noexcept;

 private:
  struct Tables {
    const function::RemoteKernel* kernel = nullptr;
    std::shared_ptr<function::LoadedTables> loaded;  // null: another tenant has granted them
    function::StageNeeds needs;
    bool needs_are_known = false;
    std::shared_ptr<TableGrant> grant{};  // to others, or of the other tenant; null: none
  };
  struct Lane {
    std::uint32_t thread = 0;
    std::uint64_t device_bytes = 0;
    std::uint64_t host_bytes = 0;
  };

  /// Why the protocol is broken; "": it is not.
  [[nodiscard]] std::string handle(Received message);
  [[nodiscard]] std::string answer(const Hello& hello);
  [[nodiscard]] std::string answer(const StatusRequest& request);
  void answer(const SetPolicy& request);
  void answer(const OpenMemory& request, const Received& message);
  void answer(const LoadTables& request, const Received& message);
  void answer(const GrantTables& request);
  void answer(const UseGrant& request);
  void answer(const MakeStage& request);
  void answer(const MakeLane& request);
  void handle(const Release& release);
  void give_back(const Release& release);

  [[nodiscard]] Result<std::uint32_t> open_memory(const OpenMemory& request, int file);
  [[nodiscard]] Result<std::uint32_t> load_tables(const LoadTables& request, int file);
  [[nodiscard]] Result<void> reserve_for_load(const function::RemoteKernel& kernel, const function::StageRecipe& recipe,
                                              std::uint64_t& reserved);
  [[nodiscard]] Result<void> replace_tables(Tables& tables, const function::StageRecipe& recipe);
  [[nodiscard]] Result<function::GrantToken> grant_tables(std::uint32_t tables);
  [[nodiscard]] Result<std::uint32_t> use_grant(const UseGrant& request);
  void end_grant(const Tables& tables) noexcept;
  [[nodiscard]] Result<std::uint32_t> make_stage(const MakeStage& request);
  [[nodiscard]] Result<std::uint32_t> make_lane(const MakeLane& request, std::vector<int>& files);
  [[nodiscard]] Result<void> reserve(std::atomic<std::uint64_t>& used, std::uint64_t quota, std::uint64_t bytes,
                                     std::string_view what) const;
  void reply(const Result<std::uint32_t>& result, std::span<const int> files = {}) noexcept;
  void send(const Reply& reply, std::span<const int> files = {}) noexcept;

  FileDescriptor socket_;
  const Peer peer_;
  TableGrants& grants_;
  Admission& admission_;
  TenantState state_;
  bool admitted_ = false;
  Quota quota_;
  std::map<std::uint32_t, Tables> tables_;
  std::map<std::uint32_t, std::unique_ptr<LaneWorker>> threads_;
  std::map<std::uint32_t, Lane> lanes_;
  IdCounter ids_;
  std::chrono::nanoseconds releasing_{};  // the time that releases took since the last other request
};

}  // namespace penstock::proxy
