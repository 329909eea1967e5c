// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The device of a proxy.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "function/stage_recipe.h"
#include "proxy/profile.h"
#include "ring/lane.h"
#include "ring/lane_memory.h"

namespace penstock::proxy {

/// Multiprocessors that lanes of one tenant have to themselves.
class MultiprocessorPart {
 public:
  virtual ~MultiprocessorPart() = default;
  [[nodiscard]] virtual std::uint32_t multiprocessors() const noexcept = 0;
};

/// All functions but `divide_multiprocessors` are thread-safe. Those that throw throw gpu::CudaError.
class Backend {
 public:
  virtual ~Backend() = default;

  /// "GPU 0 (NVIDIA H200)"
  [[nodiscard]] virtual std::string device() const = 0;
  /// In bytes, for tenants.
  [[nodiscard]] virtual std::uint64_t memory() const = 0;
  [[nodiscard]] virtual std::uint32_t multiprocessors() const = 0;
  /// Chooses the device for the calling thread. Throws.
  virtual void select() const = 0;
  /// Whether an error has ended this process's use of the device.
  [[nodiscard]] virtual bool is_lost() const noexcept = 0;
  /// Lets the device access host memory until the result is destroyed. Throws.
  [[nodiscard]] virtual std::shared_ptr<void> open(std::span<std::uint8_t> memory) const = 0;
  /// Null for an unknown kernel.
  [[nodiscard]] virtual const function::RemoteKernel* kernel(std::string_view name) const noexcept = 0;
  /// All kernels, for messages: "firewall, router".
  [[nodiscard]] virtual std::string kernel_names() const = 0;
  /// Divides the multiprocessors into sixteenths for `take_part`. Throws if the device cannot do that.
  virtual void divide_multiprocessors() = 0;
  /// The sixteenths of this profile, which nobody else gets while the part exists. Throws.
  [[nodiscard]] virtual std::shared_ptr<const MultiprocessorPart> take_part(Profile profile) const = 0;
  /// `memory` is open. `part` is what its kernels may fill, and outlives it; null: all multiprocessors. Throws.
  [[nodiscard]] virtual std::unique_ptr<ring::Lane> make_lane(const ring::LaneShape& shape, ring::LaneStages stages,
                                                              const ring::LaneMemory& memory,
                                                              const MultiprocessorPart* part) const = 0;
};

/// A GPU, which runs these kernels. Throws gpu::CudaError if there is none.
[[nodiscard]] std::unique_ptr<Backend> make_gpu_backend(int index, std::span<const function::RemoteKernel> kernels);

}  // namespace penstock::proxy
