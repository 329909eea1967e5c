// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rates of key filters on a device, from passes over all keys. The keys are in pinned host memory, with a copy in
// device memory. Needs no CUDA header.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "experiments/core_rates.h"
#include "experiments/filter/key_filter.h"

namespace penstock::experiments {

/// What a pass includes (Hung & Guo §3.3 and §4.3).
enum class Transfer : std::uint8_t {
  none,       // keys and results in device memory: only kernels
  direct,     // one copy of all keys to the device, a kernel, one copy of all results back
  zero_copy,  // the kernel reads the host's memory and writes results there
  streamed,   // direct for each chunk, and chunks use the streams in turn
};

/// "none", "direct", "zero_copy" or "streamed".
[[nodiscard]] Transfer transfer_of(std::string_view name);

struct PassOptions {
  bool texture = false;  // keys are read through a texture, else directly
  Transfer transfer = Transfer::direct;
  unsigned result_bits = 16;
  std::size_t chunk = 0;  // keys, a multiple of kWarp; for streamed
  unsigned streams = 1;   // for streamed
  unsigned block = 256;   // threads in a block
  unsigned share = 100;   // percent of the device's multiprocessors: 25, 50, 75 or 100
};

class DevicePasses {
 public:
  /// `count`: a multiple of kWarp. Makes the device current for this thread. All functions may throw gpu::CudaError.
  DevicePasses(int device, std::size_t count);
  DevicePasses(const DevicePasses&) = delete;
  DevicePasses& operator=(const DevicePasses&) = delete;
  ~DevicePasses();

  /// In pinned memory. After changing them, call `send_keys`.
  [[nodiscard]] std::span<TupleKey> keys() noexcept;
  void send_keys();

  /// Keys per second, one rate for each repeat, by the host's clock. Without a filter: only what is copied. `expected`
  /// has the number of the right rule for every kCheckedStep-th key; fails if a result is wrong. Fails if the device
  /// refuses to give a share of its multiprocessors.
  [[nodiscard]] Result<std::vector<double>> rates(const KeyFilter* filter, const PassOptions& options,
                                                  std::span<const std::uint32_t> expected, const Timing& timing);

  /// The multiprocessors that work in a pass with this share; fails if the device cannot be divided.
  [[nodiscard]] Result<unsigned> multiprocessors(unsigned share);

 private:
  class Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace penstock::experiments
