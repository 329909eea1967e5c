// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Device stages as data: what a stage is made from, so that a process that owns a device can make and run it for
// another process. Neither trusts the other. The kernels are those of this program, by name (nf/catalog.h); tables and
// arguments come with the recipe. A check before anything is loaded proves that the kernel stays inside the tables that
// came with it and that no packet keeps it busy for long, whatever packets, states and tables say.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "packet/batch.h"
#include "packet/device_stage.h"
#include "packet/field.h"

namespace penstock::function {

/// A table in host memory, as it will lie on the device; shared by the recipes of all stages that use it.
using TableBytes = std::shared_ptr<const std::vector<std::byte>>;

/// What a device stage is made from, in a form that another process can check and make it from.
struct StageRecipe {
  std::string kernel;                // name in the list of remote kernels: "router"
  std::vector<std::byte> arguments;  // trivially copyable values of the kernel's, checked by its maker
  std::vector<TableBytes> tables;
};

/// What a stage made from a recipe uses of its lane, as NfTraits say it of a function's own stage. A lane that offers
/// less must not run it: the stage would leave the memory of the lane.
struct StageNeeds {
  Access access;                     // the most that it reads and writes; with the payload, it needs whole frames
  std::uint32_t findings_bytes = 0;  // that it writes for each packet
  std::uint32_t state_bytes = 0;     // that it reads for each packet; they may have any values
  FrameRoom growth{};                // that it may use before and after each frame
  bool chooses_port = true;          // it may choose where packets leave
  friend bool operator==(const StageNeeds&, const StageNeeds&) = default;
};

/// Tables on a device. Outlives the stages that it makes.
class LoadedTables {
 public:
  virtual ~LoadedTables() = default;
  /// For one more batch in flight; throws CudaError.
  [[nodiscard]] virtual std::unique_ptr<DeviceStage> make_stage(const StageUse& use) = 0;
  /// Exchanges them for those of another recipe of the same kernel, which has been checked. Stages use the new tables
  /// from their next batch boundary on; when it returns, none uses the former ones any more, and these are freed. Waits
  /// for the stages, and calls `meanwhile` again and again until then. False: its stages cannot use such tables. Throws
  /// CudaError. In both cases, nothing has changed.
  [[nodiscard]] virtual bool replace(const StageRecipe& recipe, const std::function<void()>& meanwhile) {
    static_cast<void>(recipe);
    static_cast<void>(meanwhile);
    return false;
  }
  [[nodiscard]] virtual std::size_t bytes() const noexcept = 0;  // on the device
  /// What each such stage has on the device besides the tables, in bytes. It counts for whoever makes the stage.
  [[nodiscard]] virtual std::size_t stage_bytes(const StageUse& /*use*/) const noexcept { return 0; }
};

/// An entry of the list of kernels that a proxy runs for others.
struct RemoteKernel {
  std::string_view name;
  /// Checks all that a kernel would index or loop by; changes nothing, needs no device. The recipe comes from somebody
  /// who may lie, but must not change during the call and after it: check a private copy. Takes time and memory in
  /// proportion to the recipe's bytes.
  Result<void> (*check)(const StageRecipe& recipe);
  /// Copies the tables to the current device; call it after `check`. Throws CudaError.
  std::unique_ptr<LoadedTables> (*load)(const StageRecipe& recipe);
  /// Call it after `check`.
  StageNeeds (*needs)(const StageRecipe& recipe) = nullptr;
  /// The most memory of the device that `load` takes, if a recipe can need more than it has itself. Reserve it before,
  /// and call this after `check`.
  std::uint64_t (*load_bytes)(const StageRecipe& recipe) = nullptr;
};

}  // namespace penstock::function
