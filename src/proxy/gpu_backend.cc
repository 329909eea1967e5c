// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "gpu/cuda_error.h"
#include "gpu/devices.h"
#include "gpu/green_context.h"
#include "gpu/pinned_pool.h"
#include "gpu/pinned_region.h"
#include "proxy/backend.h"

namespace penstock::proxy {

namespace {

class GpuPart final : public MultiprocessorPart {
 public:
  /// Without a context: all multiprocessors.
  GpuPart(std::shared_ptr<const gpu::GreenContext> context, std::uint32_t multiprocessors)
      : context_(std::move(context)), multiprocessors_(multiprocessors) {}
  std::uint32_t multiprocessors() const noexcept override { return multiprocessors_; }
  [[nodiscard]] const gpu::GreenContext* context() const noexcept { return context_.get(); }

 private:
  const std::shared_ptr<const gpu::GreenContext> context_;
  const std::uint32_t multiprocessors_;
};

/// For the lanes of all tenants, so that making one does not hold up others.
constexpr std::size_t kPinnedReserve = std::size_t{256} << 20;

class GpuBackend final : public Backend {
 public:
  GpuBackend(const gpu::Device& device, std::span<const function::RemoteKernel> kernels)
      : index_(device.index),
        name_(device.name),
        memory_(device.memory_bytes),
        multiprocessors_(static_cast<std::uint32_t>(device.multiprocessors)),
        kernels_(kernels) {
    select();
    gpu::reserve_pinned_memory(kPinnedReserve);
  }

  std::string device() const override { return fmt::format("GPU {} ({})", index_, name_); }
  std::uint64_t memory() const override { return memory_; }
  std::uint32_t multiprocessors() const override { return multiprocessors_; }
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
  void divide_multiprocessors() override {
    select();
    groups_.emplace(Profile::kWhole);
  }
  std::shared_ptr<const MultiprocessorPart> take_part(Profile profile) const override {
    // What is left over when the device is divided belongs to whoever has all of it.
    if (profile.units == Profile::kWhole) return std::make_shared<GpuPart>(nullptr, multiprocessors_);
    select();
    auto context = groups_.value().take(profile.units);
    const std::uint32_t multiprocessors = context->multiprocessors();
    return std::make_shared<GpuPart>(std::move(context), multiprocessors);
  }
  std::unique_ptr<ring::Lane> make_lane(const ring::LaneShape& shape, ring::LaneStages stages,
                                        const ring::LaneMemory& memory, const MultiprocessorPart* part) const override {
    select();
    const gpu::GreenContextScope scope(part == nullptr ? nullptr : static_cast<const GpuPart*>(part)->context());
    return ring::make_device_lane(shape, std::move(stages), nullptr, &memory);
  }

 private:
  const int index_;
  const std::string name_;
  const std::uint64_t memory_;
  const std::uint32_t multiprocessors_;
  const std::span<const function::RemoteKernel> kernels_;
  std::optional<gpu::MultiprocessorGroups> groups_;
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
