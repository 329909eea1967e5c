// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gpu/cuda_error.h"
#include "gpu/devices.h"
#include "gpu/pinned_region.h"
#include "proxy/backend.h"

namespace penstock::proxy {

namespace {

class GpuBackend final : public Backend {
 public:
  GpuBackend(const gpu::Device& device, std::span<const function::RemoteKernel> kernels)
      : index_(device.index), name_(device.name), memory_(device.memory_bytes), kernels_(kernels) {
    select();
  }

  std::string device() const override { return fmt::format("GPU {} ({})", index_, name_); }
  std::uint64_t memory() const override { return memory_; }
  void select() const override { gpu::use_device(index_); }
  bool is_lost() const noexcept override { return gpu::is_lost(index_); }
  std::shared_ptr<void> open(std::span<std::uint8_t> memory) const override {
    select();
    return std::make_shared<gpu::PinnedRegion>(memory);
  }
  const function::RemoteKernel* kernel(std::string_view name) const noexcept override {
    const auto found = std::ranges::find(kernels_, name, &function::RemoteKernel::name);
    return found == kernels_.end() ? nullptr : &*found;
  }
  std::string kernel_names() const override {
    std::string names;
    for (const function::RemoteKernel& kernel : kernels_) {
      if (!names.empty()) names += ", ";
      names += kernel.name;
    }
    return names;
  }
  std::unique_ptr<ring::Lane> make_lane(const ring::LaneShape& shape, ring::LaneStages stages,
                                        const ring::LaneMemory& memory) const override {
    select();
    return ring::make_device_lane(shape, std::move(stages), nullptr, &memory);
  }

 private:
  const int index_;
  const std::string name_;
  const std::uint64_t memory_;
  const std::span<const function::RemoteKernel> kernels_;
};

}  // namespace

std::unique_ptr<Backend> make_gpu_backend(int index, std::span<const function::RemoteKernel> kernels) {
  const gpu::DeviceList list = gpu::list_devices();
  if (list.availability != gpu::Availability::kUsable)
    throw gpu::CudaError(0, "no GPU can be used here: " + list.reason);
  const auto found = std::ranges::find(list.devices, index, &gpu::Device::index);
  if (found == list.devices.end() || !found->supported)
    throw gpu::CudaError(0, fmt::format("there is no GPU {}, or this program has no code for it", index));
  return std::make_unique<GpuBackend>(*found, kernels);
}

}  // namespace penstock::proxy
