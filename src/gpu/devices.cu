// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Queries the devices through the CUDA runtime.

#include "gpu/devices.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/cpu_topology.h"
#include "base/slow_notice.h"
#include "gpu/check.cuh"
#include "gpu/nvml.h"

namespace penstock::gpu {
namespace {

constexpr int kOldestComputeMajor = 8;  // the oldest of CMAKE_CUDA_ARCHITECTURES

std::string cuda_version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Device describe(int index) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index));
  std::array<char, 32> bus_id{};
  check(cudaDeviceGetPCIBusId(bus_id.data(), bus_id.size(), index));
  return {.index = index,
          .name = properties.name,
          .compute_major = properties.major,
          .compute_minor = properties.minor,
          .supported = properties.major >= kOldestComputeMajor,
          .multiprocessors = properties.multiProcessorCount,
          .memory_bytes = properties.totalGlobalMem,
          .l2_bytes = static_cast<std::size_t>(properties.l2CacheSize),
          .pci_bus_id = bus_id.data(),
          .link = pcie_link(bus_id.data()),
          .numa_node = numa_node_of_pci(bus_id.data())};
}

/// Explains to the user why the devices cannot be counted.
void explain(DeviceList& list, cudaError_t status) {
  switch (status) {
    case cudaErrorInsufficientDriver:
      list.availability = Availability::kDriverTooOld;
      list.reason =
          "the NVIDIA driver supports CUDA " + list.driver_cuda + ", but this program needs " + list.runtime_cuda;
      return;
    case cudaErrorNoDevice:
      list.availability = Availability::kNoDevice;
      list.reason = "the NVIDIA driver shows no GPU to this process";
      return;
    default:
      list.availability = Availability::kFailed;
      list.reason = std::string("the NVIDIA driver failed: ") + cudaGetErrorString(status);
  }
}

}  // namespace

void load_kernels_at_once() noexcept { ::setenv("CUDA_MODULE_LOADING", "EAGER", 0); }

DeviceList list_devices() {
  const SlowNotice notice(
      "waiting for the NVIDIA driver to list its GPUs (a GPU that hangs can block it: see `dmesg`) …");
  DeviceList list;
  list.runtime_cuda = cuda_version(CUDART_VERSION);

  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    list.availability = Availability::kNoDriver;
    list.reason = "no NVIDIA driver is installed (libcuda.so.1 is not found)";
    return list;
  }
  list.driver = nvidia_driver_version();
  list.driver_cuda = cuda_version(driver);

  int count = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    explain(list, status);
    return list;
  }
  try {
    for (int index = 0; index < count; ++index) list.devices.push_back(describe(index));
  } catch (const CudaError& error) {
    explain(list, static_cast<cudaError_t>(error.code()));
    return list;
  }

  if (list.devices.empty()) {
    explain(list, cudaErrorNoDevice);
  } else if (std::none_of(list.devices.begin(), list.devices.end(), [](const Device& d) { return d.supported; })) {
    list.availability = Availability::kTooOldDevice;
    list.reason = "no GPU here has compute capability " + std::to_string(kOldestComputeMajor) + ".0 or newer";
  } else {
    list.availability = Availability::kUsable;
  }
  return list;
}

void use_device(int index) { check(cudaSetDevice(index)); }

bool is_lost(int index) noexcept {
  std::size_t free = 0, total = 0;
  const bool lost = cudaSetDevice(index) != cudaSuccess || cudaMemGetInfo(&free, &total) != cudaSuccess;
  static_cast<void>(cudaGetLastError());
  return lost;
}

int current_device() {
  int index = 0;
  check(cudaGetDevice(&index));
  return index;
}

}  // namespace penstock::gpu
