// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The router's tables on a device. All GPU stages of the device share a snapshot of them (left-right, as on the host):
// an update copies the tables that changed, as a whole, into the copy that no stage reads, and publishes it. Owns the
// device memory.

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>

#include "function/snapshot.h"
#include "gpu/memory.h"
#include "gpu/stage.h"
#include "nf/router/fib.h"
#include "nf/router/forward_core.h"
#include "nf/router/table_spans.h"
#include "nf/router/table_versions.h"

namespace penstock::router {

/// One copy of the tables, on the device that was current when it was made.
class DeviceTables {
 public:
  /// Throw CudaError.
  DeviceTables(const TableSpans& tables, const TableVersions& versions) { assign(tables, versions); }
  explicit DeviceTables(const TableRuns& tables) { assign(tables, {}); }

  /// Copies the tables that differ from those here, by their versions, and waits. Throws CudaError; the copy is then
  /// unusable.
  template <template <typename> typename Trie>
  void assign(const TablesOf<Trie>& tables, const TableVersions& versions);

  // Pass these by value to kernels. Valid until the next `assign`.
  [[nodiscard]] const Fib4View& v4() const noexcept { return v4_view_; }
  [[nodiscard]] const Fib6View& v6() const noexcept { return v6_view_; }
  [[nodiscard]] const ForwardView& view() const noexcept { return view_; }

 private:
  /// An array with spare capacity, so that growing tables rarely need new memory.
  template <typename T>
  struct Array {
    gpu::DeviceBuffer<T> buffer;
    void make_room(std::size_t size);
    const T* assign(std::span<const T> host);
    const T* assign(const RunSpans& host);
  };
  struct Fib {
    Array<std::uint32_t> root, nodes;
    template <template <typename> typename Trie, typename View>
    View assign(const Trie<View>& host);
  };

  TableVersions versions_{0, 0, 0, 0, 0};  // no tables copied yet
  Fib v4_, v6_;
  Array<Hop> hops_;
  Array<Neighbour> neighbours_;
  Array<EgressPort> ports_;
  Fib4View v4_view_;
  Fib6View v6_view_;
  ForwardView view_;
};

/// Everything that one device has of the tables. The workers' threads read it through stages; only one thread at a time
/// updates.
class DeviceSide {
 public:
  /// Make it on the current device; throw CudaError.
  DeviceSide(const TableSpans& tables, const TableVersions& versions);
  explicit DeviceSide(const TableRuns& tables);

  /// Makes a stage for one more batch in flight. It must not outlive this object.
  [[nodiscard]] std::unique_ptr<gpu::GpuStage> make_stage(CheckRules rules);

  /// Whether the device has these tables.
  [[nodiscard]] bool has(const TableVersions& versions) const noexcept { return versions_ == versions; }
  /// Updates the device. Batches that begin after it returns see these tables. If they cannot be copied to the device,
  /// its stages refuse batches. Waits for the stages' batch boundaries.
  void follow(const TableSpans& tables, const TableVersions& versions) noexcept;

  /// Updates the device as well, but keeps one copy only. Calls `meanwhile` until no stage uses the former one, which
  /// is then freed. Throws CudaError; the tables then stay as they are. A side uses either this or `follow`.
  void replace(const TableRuns& tables, const std::function<void()>& meanwhile);

  [[nodiscard]] function::Snapshot<DeviceTables>& snapshot() noexcept { return snapshot_; }
  /// Whether its tables are out of date and must not be used.
  [[nodiscard]] bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }

 private:
  const int device_;
  TableVersions versions_;  // of the last tables that were copied
  std::atomic<bool> lost_ = false;
  std::unique_ptr<DeviceTables> shadow_;  // made at the first update
  function::Snapshot<DeviceTables> snapshot_;
};

/// Borrows `side`, which must belong to the current device.
[[nodiscard]] std::unique_ptr<gpu::GpuStage> make_router_gpu_stage(DeviceSide& side, CheckRules rules);

}  // namespace penstock::router
