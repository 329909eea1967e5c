// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rates of an engine on cores and on a GPU, in keys per second, one for each repeat.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "experiments/core_rates.h"
#include "experiments/offload/lookups.h"
#include "gpu/stream.h"

namespace penstock::experiments {

/// On `cores` threads at once, each with its own keys. The engine gets whole batches, or pieces of a batch that would
/// take longer than 10 ms. Results are written to a buffer of the thread, which the next batch overwrites. Fails if a
/// value of the sample is wrong.
[[nodiscard]] Result<std::vector<double>> measure_on_cores(const LookupWork& work, const LookupEngine& engine,
                                                           unsigned cores, std::size_t batch, const Timing& timing);

/// Rates on one device. Keys and results of both kinds of measurement are checked against the work's own.
class DeviceRates {
 public:
  /// Makes the device current for this thread, and copies the work's keys to pinned host memory and to the device. All
  /// functions may throw gpu::CudaError.
  DeviceRates(int device, const LookupWork& work);

  /// From pinned host memory to pinned host memory, by the host's clock. Batches use the streams in turn, each with a
  /// copy to the device, a kernel and a copy back. A stream has at most kInFlight batches, and device memory for one.
  [[nodiscard]] Result<std::vector<double>> end_to_end(const DeviceTable& table, std::size_t batch, unsigned streams,
                                                       const Timing& timing);

  /// Keys and results in device memory: kernels of one batch each, back to back on one stream, launches included, timed
  /// by CUDA events.
  [[nodiscard]] Result<std::vector<double>> kernel(const DeviceTable& table, std::size_t batch, const Timing& timing);

 private:
  static constexpr std::size_t kInFlight = 4;

  /// A stream and its device memory.
  struct Lane {
    Lane(std::size_t batch, std::size_t key_bytes) : keys(batch * key_bytes), values(batch) {}
    gpu::Stream stream;
    gpu::DeviceBuffer<std::byte> keys;
    gpu::DeviceBuffer<std::uint32_t> values;
    gpu::Event done[kInFlight];
    std::size_t batches = 0;  // enqueued so far
  };

  struct Sent {
    std::size_t batches = 0;
    double seconds = 0;
  };
  Sent send_for(const DeviceTable& table, std::size_t batch, std::vector<std::unique_ptr<Lane>>& lanes,
                const Timing& timing, std::chrono::nanoseconds duration);
  void spoil(std::span<std::uint32_t> values) const noexcept;
  [[nodiscard]] Result<void> check(std::span<const std::uint32_t> values, std::size_t covered) const;

  const LookupWork& work_;
  gpu::PinnedBuffer<std::byte> keys_;
  gpu::PinnedBuffer<std::uint32_t> values_;
  gpu::DeviceBuffer<std::byte> device_keys_;
  gpu::DeviceBuffer<std::uint32_t> device_values_;
};

}  // namespace penstock::experiments
