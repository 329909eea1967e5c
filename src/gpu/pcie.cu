// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures copies between pinned and device memory with the host's clock. A run copies half a gigabyte in about 10 ms,
// so the microseconds for enqueueing and waiting are negligible.

#include "gpu/pcie.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <deque>

#include "gpu/check.cuh"
#include "gpu/devices.h"
#include "gpu/memory.h"
#include "gpu/stream.h"

namespace penstock::gpu {
namespace {

constexpr std::size_t kCopyBytes = std::size_t{16} << 20;
constexpr int kCopies = 32;
constexpr int kRuns = 7;

/// One direction: its stream, and the memory at both ends.
struct Lane {
  PinnedBuffer<std::byte> host{kCopyBytes};
  DeviceBuffer<std::byte> device{kCopyBytes};
  Stream stream;

  void enqueue_to_device() {
    check(cudaMemcpyAsync(device.data(), host.data(), kCopyBytes, cudaMemcpyHostToDevice, stream.get()));
  }
  void enqueue_to_host() {
    check(cudaMemcpyAsync(host.data(), device.data(), kCopyBytes, cudaMemcpyDeviceToHost, stream.get()));
  }
};

/// Both directions of one GPU.
struct Lanes {
  int device;
  Lane down{};
  Lane up{};
};

/// The median rate of one direction in GB/s, for all GPUs together. Each run calls `enqueue` kCopies times for each
/// GPU; the first run is a warm-up.
template <typename Enqueue>
double median_rate(std::deque<Lanes>& gpus, Enqueue enqueue) {
  std::array<double, kRuns> rates{};
  for (int run = -1; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    for (int copy = 0; copy < kCopies; ++copy) {
      for (Lanes& gpu : gpus) {
        use_device(gpu.device);  // others cannot use memory of its pool
        enqueue(gpu);
      }
    }
    for (Lanes& gpu : gpus) {
      gpu.down.stream.wait();
      gpu.up.stream.wait();
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const double bytes = kCopies * double{kCopyBytes} * static_cast<double>(gpus.size());
    if (run >= 0) rates[static_cast<std::size_t>(run)] = bytes / seconds.count() / 1e9;
  }
  std::nth_element(rates.begin(), rates.begin() + kRuns / 2, rates.end());
  return rates[kRuns / 2];
}

}  // namespace

PcieRates measure_pcie(std::span<const int> devices) {
  std::deque<Lanes> gpus;
  for (const int device : devices) {
    use_device(device);
    gpus.emplace_back(device);
  }
  const double to_device = median_rate(gpus, [](Lanes& gpu) { gpu.down.enqueue_to_device(); });
  const double to_host = median_rate(gpus, [](Lanes& gpu) { gpu.up.enqueue_to_host(); });
  // Both directions copy the same number of bytes, and the clock stops when the slower one is done.
  const double each_way = median_rate(gpus, [](Lanes& gpu) {
    gpu.down.enqueue_to_device();
    gpu.up.enqueue_to_host();
  });
  return {.to_device = to_device, .to_host = to_host, .both_each_way = each_way};
}

}  // namespace penstock::gpu
