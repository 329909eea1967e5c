// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What several threads of the proxy know about a tenant: its quota, its counters, its memory and stages, and the
// scheduler that all tenants share.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/prefetch.h"
#include "function/stage_recipe.h"
#include "proxy/backend.h"
#include "proxy/order_check.h"
#include "proxy/profile.h"
#include "proxy/scheduler.h"
#include "proxy/table_grants.h"
#include "report/latency_histogram.h"

namespace penstock::proxy {

/// The scheduler of all tenants. Thread-safe.
class Arbiter {
 public:
  Arbiter(Policy policy, Scheduler::Device device) : scheduler_(policy, device) {}

  [[nodiscard]] static Scheduler::Time now() noexcept { return std::chrono::steady_clock::now().time_since_epoch(); }
  template <typename Work>
  auto with(Work work) {
    const std::lock_guard lock(mutex_);
    changes_.fetch_add(1, std::memory_order_relaxed);
    return work(scheduler_);
  }
  /// Changes nothing. Counters that only change while the scheduler is locked agree with each other meanwhile.
  template <typename Work>
  auto look(Work work) const {
    const std::lock_guard lock(mutex_);
    return work(scheduler_);
  }
  /// Changes when something may start that could not before, apart from what time brings. So those who wait need not
  /// ask all the time, and keep others from the scheduler.
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool try_start(Scheduler::Batch& batch) {
    const std::lock_guard lock(mutex_);
    if (!scheduler_.try_start(batch, now())) return false;
    changes_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

 private:
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> changes_{0};
  alignas(kCacheLineBytes) mutable std::mutex mutex_;  // guards the scheduler; held for a moment only
  Scheduler scheduler_;
};

/// Written by the tenant's threads, read by anybody.
struct TenantCounters {
  // While the scheduler is locked:
  std::atomic<std::uint64_t> batches{0};  // segments of batches that the device has done
  std::atomic<std::uint64_t> late{0};     // of these, those that took longer than the tenant's bound
  report::LatencyHistogram latencies;     // of these, from order to end
  // At any time:
  std::atomic<std::uint64_t> packets{0};
  std::atomic<std::uint64_t> to_device{0};   // bytes
  std::atomic<std::uint64_t> to_host{0};     // bytes
  std::atomic<std::uint64_t> waiting_ns{0};  // for the scheduler, from order to start, of each
  std::atomic<std::uint64_t> device_ns{0};   // from start to end, of each
  std::atomic<std::uint64_t> charged_ns{0};  // its part of the time of the device (scheduler.h)
  // Of the transfers and kernels of all batches, estimated from some of them.
  std::atomic<std::uint64_t> transfer_ns{0};
  std::atomic<std::uint64_t> kernel_ns{0};
  std::atomic<std::uint64_t> failures{0};  // of the device
  std::atomic<std::uint64_t> in_flight{0};
  std::atomic<std::uint64_t> device_bytes{0};  // of memory on the device
  std::atomic<std::uint64_t> host_bytes{0};    // that the device can access
  std::atomic<std::uint64_t> table_updates{0};
  std::atomic<std::uint64_t> attach_ns{0};  // from `hello` to the end of the first batch; 0: there was none yet
  // Of that, how long requests of a kind took in the proxy.
  std::atomic<std::uint64_t> attach_memory_ns{0};
  std::atomic<std::uint64_t> attach_tables_ns{0};
  std::atomic<std::uint64_t> attach_lanes_ns{0};
};

/// Ids of what a tenant makes, from 1. None comes twice: what still has an id must not be replaced.
class IdCounter {
 public:
  /// Throws std::length_error if there are no more.
  [[nodiscard]] std::uint32_t next() {
    if (next_ == 0) throw std::length_error("a tenant that has used all ids");
    return next_++;
  }

 private:
  std::uint32_t next_ = 1;
};

/// The stages of a tenant, in lanes or not yet.
class StagePool {
 public:
  struct Stage {
    std::shared_ptr<void> reserved;  // its memory; given back after it has ended
    std::shared_ptr<function::LoadedTables> tables;
    std::unique_ptr<DeviceStage> stage;  // null while a lane has it; ends before the tables
    StageUse use;
    function::StageNeeds needs;
    std::shared_ptr<const TableGrant> grant{};  // of another tenant's tables; null: they are the tenant's own
    bool in_lane = false;
    bool dropped = false;  // goes when the lane gives it back

    [[nodiscard]] bool has_ended() const noexcept { return grant != nullptr && grant->has_ended(); }
  };
  struct Taken {
    std::unique_ptr<DeviceStage> stage{};  // null: there is none, or a lane has it, or it has ended
    StageUse use{};
    function::StageNeeds needs{};
    std::shared_ptr<const TableGrant> grant{};
    bool has_ended = false;  // with tables that another tenant had granted
  };

  /// `made.stage` is not null. Throws std::length_error if there are no more ids.
  [[nodiscard]] std::uint32_t add(Stage made);
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] Taken take(std::uint32_t id);
  void give_back(std::uint32_t id, std::unique_ptr<DeviceStage> stage);
  void drop(std::uint32_t id);
  /// Those that no lane has pass a batch boundary.
  void pass_boundaries() noexcept;
  /// Ends those whose tables have ended, as far as no lane has them. Their ids stay until they are dropped.
  void release_ended() noexcept;
  /// Ends all. No lane has any.
  void clear() noexcept;

 private:
  [[nodiscard]] static Stage release(Stage& stage) noexcept;

  mutable std::mutex mutex_;  // guards the following members
  std::map<std::uint32_t, Stage> stages_;
  IdCounter ids_;
};

struct TenantState {
  TenantState(const Backend& of_backend, Arbiter& of_arbiter) : backend(of_backend), arbiter(of_arbiter) {}

  const Backend& backend;
  Arbiter& arbiter;
  Scheduler::Id scheduled = 0;
  std::shared_ptr<const MultiprocessorPart> part;  // null: all multiprocessors; set before there are lanes
  TenantCounters counters;
  StagePool stages;
  std::atomic<bool> exchanges_tables{false};  // lanes pass boundaries while they have no batch
  Scheduler::Time hello_at{};                 // set before there are lanes
  /// Shared with what frees them.
  const std::shared_ptr<TableCount> tables = std::make_shared<TableCount>();

  /// For the threads that serve lanes.
  [[nodiscard]] TenantMemories memories() const {
    const std::lock_guard lock(memories_mutex_);
    return memories_;
  }
  /// The id; kMostMemories: there are too many.
  [[nodiscard]] std::uint32_t add_memory(std::shared_ptr<const TenantMemory> memory);
  /// What was there has no id any more. If a lane still uses it, it ends in `end_removed`.
  void remove_memory(std::uint32_t id);
  /// Ends removed memories that no lane uses any more. To be called by the connection's thread now and then: the driver
  /// takes long for it, and the threads of lanes must see meanwhile that batches have ended.
  void end_removed();

  /// A batch has ended well. The first one tries a lane, so the tenant is there.
  void note_batch(Scheduler::Time now) noexcept;

  /// Ends the tenant: it has broken the protocol. The first reason counts.
  void end(std::string why);
  [[nodiscard]] bool ends() const noexcept { return ends_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::string why() const;

 private:
  mutable std::mutex memories_mutex_;  // guards the next two members
  TenantMemories memories_;
  std::vector<std::shared_ptr<const TenantMemory>> removed_;  // nobody else can get them
  std::atomic<bool> ends_{false};
  mutable std::mutex why_mutex_;  // guards `why_`
  std::string why_;
};

/// Whether a stage with these needs can run there. Null: it can; else why not.
[[nodiscard]] const char* why_not_fit(const function::StageNeeds& needs, const ring::LaneShape& shape,
                                      std::size_t segment, std::size_t stage) noexcept;

}  // namespace penstock::proxy
