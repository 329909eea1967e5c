// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The router's tables on a device. All GPU stages of the device see a snapshot of their own of them (left-right, as on
// the host): an update copies the tables that it changed, whole, into the copy that nobody reads, and publishes that.
// Owns the device's memory.

#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "function/snapshot.h"
#include "gpu/memory.h"
#include "gpu/stage.h"
#include "nf/router/fib.h"
#include "nf/router/forward_core.h"
#include "nf/router/table_versions.h"

namespace penstock::router {

struct RouterTables;

/// One copy of the tables, on the device that was current when it was made.
class DeviceTables {
 public:
  /// Throws CudaError.
  explicit DeviceTables(const RouterTables& tables) { assign(tables); }

  /// Copies what differs from what is here, and waits. Throws CudaError; the copy is then of no use.
  void assign(const RouterTables& tables);

  // To be passed by value to kernels; valid until the next `assign`.
  [[nodiscard]] const Fib4View& v4() const noexcept { return v4_view_; }
  [[nodiscard]] const Fib6View& v6() const noexcept { return v6_view_; }
  [[nodiscard]] const ForwardView& view() const noexcept { return view_; }

 private:
  /// Room for some more than is copied, so that tables that grow seldom need new memory.
  template <typename T>
  struct Array {
    gpu::DeviceBuffer<T> buffer;
    const T* assign(std::span<const T> host);
  };
  struct Fib {
    Array<std::uint32_t> root, nodes;
    template <typename View>
    View assign(const View& host);
  };

  TableVersions versions_{0, 0, 0, 0};  // nothing is here yet
  Fib v4_, v6_;
  Array<Hop> hops_;
  Array<Neighbour> neighbours_;
  Array<EgressPort> ports_;
  Fib4View v4_view_;
  Fib6View v6_view_;
  ForwardView view_;
};

/// All that one device has of the tables. Stages read, on the workers' threads; one thread at a time updates.
class DeviceSide {
 public:
  /// On the current device; throws CudaError.
  explicit DeviceSide(const RouterTables& tables);

  /// For one more batch in flight; it must not outlive this.
  [[nodiscard]] std::unique_ptr<gpu::GpuStage> make_stage(CheckRules rules);

  /// Whether it has followed these tables.
  [[nodiscard]] bool has(const RouterTables& tables) const noexcept;
  /// Batches that begin after this returns see these tables, or, where they cannot be brought to the device, are
  /// refused by its stages. Waits for the stages' batch boundaries.
  void follow(const RouterTables& tables) noexcept;

  [[nodiscard]] function::Snapshot<DeviceTables>& snapshot() noexcept { return snapshot_; }
  /// Whether its tables are not the newest, and may not be used.
  [[nodiscard]] bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }

 private:
  const int device_;
  TableVersions versions_;  // that were followed last
  std::atomic<bool> lost_ = false;
  std::unique_ptr<DeviceTables> shadow_;  // made at the first update
  function::Snapshot<DeviceTables> snapshot_;
};

/// Borrows the side, which is of the current device.
[[nodiscard]] std::unique_ptr<gpu::GpuStage> make_router_gpu_stage(DeviceSide& side, CheckRules rules);

}  // namespace penstock::router
