// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/kernel/gpu_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "gpu/cuda_error.h"
#include "gpu/devices.h"
#include "gpu/memory.h"
#include "gpu/module.h"
#include "gpu/stream.h"

namespace penstock::kernel {

namespace {

using Clock = std::chrono::steady_clock;

/// What launchers share. Immutable.
struct Loaded {
  gpu::Module module;
  gpu::ModuleKernel kernel;
  gpu::DeviceBuffer<char> table;
  unsigned block = 0;
  int gpu = 0;
  std::chrono::nanoseconds limit{};
};

class GpuLauncher final : public Launcher {
 public:
  GpuLauncher(const Loaded& loaded, bool writes)
      : loaded_(loaded),
        writes_(writes),
        packets_(kMostPackets),
        frames_(kFramesBytes),
        verdicts_(kMostPackets),
        device_packets_(kMostPackets),
        device_frames_(kFramesBytes),
        device_verdicts_(kMostPackets),
        room_{packets_.span(), frames_.span(), verdicts_.span()} {}

  const Room& room() noexcept override { return room_; }
  bool run(std::size_t count, std::size_t frames_bytes) noexcept override {
    try {
      // Other threads of the process have other devices.
      if (!std::exchange(has_device_, true)) gpu::use_device(loaded_.gpu);
      if (!enqueue(count, frames_bytes)) stream_.wait();  // throws what is wrong
      wait();
    } catch (const std::exception& error) {
      failure_ = fmt::format("the kernel has failed: {}", error.what());
    }
    return failure_.empty();
  }
  std::string_view failure() const noexcept override { return failure_; }

 private:
  [[nodiscard]] bool enqueue(std::size_t count, std::size_t frames_bytes) noexcept {
    penstock_batch batch{};
    batch.abi = PENSTOCK_KERNEL_ABI;
    batch.count = static_cast<std::uint32_t>(count);
    batch.frames = device_frames_.data();
    batch.frames_bytes = frames_bytes;
    batch.packets = device_packets_.data();
    batch.verdicts = device_verdicts_.data();
    batch.table = reinterpret_cast<const std::uint8_t*>(loaded_.table.data());
    batch.table_bytes = loaded_.table.size();
    return gpu::copy_async(device_packets_.data(), packets_.data(), count * sizeof(penstock_packet), stream_) &&
           (frames_bytes == 0 || gpu::copy_async(device_frames_.data(), frames_.data(), frames_bytes, stream_)) &&
           gpu::zero_async(device_verdicts_.data(), count * sizeof(penstock_verdict), stream_) &&
           loaded_.kernel.launch(count, loaded_.block, stream_, batch) &&
           gpu::copy_async(verdicts_.data(), device_verdicts_.data(), count * sizeof(penstock_verdict), stream_) &&
           (!writes_ || frames_bytes == 0 ||
            gpu::copy_async(frames_.data(), device_frames_.data(), frames_bytes, stream_));
  }
  void wait() {
    const Clock::time_point latest = Clock::now() + loaded_.limit;
    for (;;) {
      switch (stream_.progress()) {
        case gpu::Progress::kDone: return;
        case gpu::Progress::kFailed: return stream_.wait();  // throws what is wrong
        case gpu::Progress::kRunning: break;
      }
      if (Clock::now() < latest) continue;
      failure_ = fmt::format("the kernel has not ended within {} (limit)", format_duration(loaded_.limit));
      return;
    }
  }

  const Loaded& loaded_;
  const bool writes_;
  bool has_device_ = false;  // of the thread that runs it
  gpu::Stream stream_;
  gpu::PinnedBuffer<penstock_packet> packets_;
  gpu::PinnedBuffer<std::uint8_t> frames_;
  gpu::PinnedBuffer<penstock_verdict> verdicts_;
  gpu::DeviceBuffer<penstock_packet> device_packets_;
  gpu::DeviceBuffer<std::uint8_t> device_frames_;
  gpu::DeviceBuffer<penstock_verdict> device_verdicts_;
  const Room room_;
  std::string failure_;
};

class GpuDevice final : public Device {
 public:
  explicit GpuDevice(Loaded loaded) : loaded_(std::move(loaded)) {}

  std::unique_ptr<Launcher> make_launcher(bool writes) override {
    gpu::use_device(loaded_.gpu);
    return std::make_unique<GpuLauncher>(loaded_, writes);
  }

 private:
  const Loaded loaded_;
};

/// Puts the value into the variable. Fails if the module has none of that name, or if the value does not fit.
Result<void> set_variable(const gpu::Module& module, const Value& value) {
  gpu::Module::Variable variable;
  try {
    variable = module.variable(value.name.c_str());
  } catch (const gpu::CudaError& error) {
    return failure(Error{{},
                         fmt::format("parameters: the module has no such variable: {}", error.what()),
                         in_quotes(value.name),
                         "extern \"C\" __constant__ of an integer type"});
  }
  const std::size_t bytes = variable.bytes;
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
    return failure(Error{{},
                         fmt::format("parameters: {} is no integer in the module", value.name),
                         fmt::format("{} bytes", bytes),
                         "1, 2, 4 or 8 bytes"});
  if (bytes < sizeof value.value && value.value >> (8 * bytes) != 0)
    return failure(Error{{},
                         fmt::format("parameters: {} is too large for the module's variable", value.name),
                         std::to_string(value.value),
                         fmt::format("a number of {} bits", 8 * bytes)});
  gpu::copy_to_device(variable.address, &value.value, bytes);  // both are little-endian
  return {};
}

/// The kernel must be one of this program's ABI, which can be launched.
Result<void> check_kernel(const gpu::ModuleKernel& kernel, const Program& program) {
  const std::vector<std::size_t> parameters = kernel.parameter_bytes();
  if (parameters.size() != 1 || parameters.front() != sizeof(penstock_batch)) {
    std::string found;
    for (const std::size_t bytes : parameters) found += fmt::format("{}{}", found.empty() ? "" : " and ", bytes);
    return failure(Error{{program.path, 0, 0},
                         fmt::format("{} has other parameters than a function's kernel", program.entry),
                         parameters.empty() ? "none" : fmt::format("{} of {} bytes", parameters.size(), found),
                         fmt::format("struct penstock_batch, {} bytes, by value", sizeof(penstock_batch))});
  }
  if (const unsigned most = kernel.most_threads(); program.block > most)
    return failure(Error{{},
                         fmt::format("block: too many threads for {}, which has many registers", program.entry),
                         std::to_string(program.block),
                         fmt::format("{} or fewer", most)});
  return {};
}

Result<gpu::Device> find_gpu(int index) {
  gpu::DeviceList list = gpu::list_devices();
  const auto found = std::ranges::find(list.devices, index, &gpu::Device::index);
  if (list.availability != gpu::Availability::kUsable || found == list.devices.end() || !found->supported)
    return failure(Error{{},
                         "a kernel needs a GPU" + (list.reason.empty() ? "" : ": " + list.reason),
                         fmt::format("gpu {}", index),
                         "a usable GPU; `penstock doctor` has details"});
  return std::move(*found);
}

}  // namespace

Result<std::unique_ptr<Device>> make_gpu_device(const Program& program) {
  const auto gpu = find_gpu(program.gpu);
  if (!gpu) return failure(gpu.error());
  try {
    gpu::use_device(program.gpu);
    std::optional<Loaded> loaded;
    try {
      gpu::Module module(program.module.code);
      const gpu::ModuleKernel kernel = module.kernel(program.entry.c_str());
      loaded.emplace(Loaded{std::move(module), kernel, {}, program.block, program.gpu, program.limit});
    } catch (const gpu::CudaError& error) {
      return failure(Error{{program.path, 0, 0},
                           fmt::format("{} cannot load the module or its kernel: {}", gpu->name, error.what()),
                           fmt::format("{}, entry {}", name(program.module.format), in_quotes(program.entry)),
                           fmt::format("code for compute capability {}.{}", gpu->compute_major, gpu->compute_minor)});
    }
    if (auto checked = check_kernel(loaded->kernel, program); !checked) return failure(std::move(checked.error()));
    for (const Value& value : program.values) {
      if (auto set = set_variable(loaded->module, value); !set) return failure(std::move(set.error()));
    }
    if (!program.table.empty()) loaded->table = gpu::DeviceBuffer<char>(std::span<const char>(program.table));
    return std::make_unique<GpuDevice>(std::move(*loaded));
  } catch (const gpu::CudaError& error) {
    return failure(Error{{}, fmt::format("the GPU cannot be used: {}", error.what()), "", ""});
  }
}

}  // namespace penstock::kernel
