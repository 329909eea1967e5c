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
#include "ring/lane.h"
#include "ring/lane_memory.h"

namespace penstock::proxy {

/// All functions are thread-safe. Those that throw throw gpu::CudaError.
class Backend {
 public:
  virtual ~Backend() = default;

  /// "GPU 0 (NVIDIA H200)"
  [[nodiscard]] virtual std::string device() const = 0;
  /// In bytes, for tenants.
  [[nodiscard]] virtual std::uint64_t memory() const = 0;
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
  /// `memory` is open. Throws.
  [[nodiscard]] virtual std::unique_ptr<ring::Lane> make_lane(const ring::LaneShape& shape, ring::LaneStages stages,
                                                              const ring::LaneMemory& memory) const = 0;
};

/// A GPU, which runs these kernels. Throws gpu::CudaError if there is none.
[[nodiscard]] std::unique_ptr<Backend> make_gpu_backend(int index, std::span<const function::RemoteKernel> kernels);

}  // namespace penstock::proxy
