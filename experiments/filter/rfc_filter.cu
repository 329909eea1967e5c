// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "classify/rfc_core.h"
#include "experiments/filter/device_filters.h"
#include "experiments/filter/key_kernels.cuh"
#include "gpu/check.cuh"
#include "gpu/memory.h"

namespace penstock::experiments {
namespace {

__constant__ std::uint64_t g_tables[kConstantBytes / sizeof(std::uint64_t)];

/// In device memory, through the caches for data that no kernel changes.
struct GlobalMemory {
  const std::byte* base = nullptr;
  template <typename T>
  [[nodiscard]] __device__ T load(std::uint32_t offset) const noexcept {
    return __ldg(reinterpret_cast<const T*>(base + offset));
  }
};

/// As much of the tables as fits in constant memory, and what follows in device memory.
struct ConstantMemory {
  GlobalMemory all;
  template <typename T>
  [[nodiscard]] __device__ T load(std::uint32_t offset) const noexcept {
    if (offset >= kConstantBytes) return all.load<T>(offset);
    return *reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(g_tables) + offset);
  }
};

[[nodiscard]] GlobalMemory memory_of(const gpu::DeviceBuffer<std::uint64_t>& copy) noexcept {
  return {reinterpret_cast<const std::byte*>(copy.data())};
}

struct Numbers {
  std::uint32_t rules;
  Deciding deciding;
};

template <bool kTexture, typename Memory>
__global__ void __launch_bounds__(kMostThreads)
    classify_keys(const KeysAt keys, const std::uint32_t count, const ResultsAt results, const Memory memory,
                  const classify::RfcFamily tables, const std::uint32_t port_count, const Numbers numbers) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const KeyWords words = key_at<kTexture>(keys, i);
  const TupleKey tuple{words.of[0], words.of[1], static_cast<std::uint16_t>(words.of[2] & 0xffff),
                       static_cast<std::uint16_t>(words.of[2] >> 16), words.of[3]};
  const std::uint32_t entry = classify::deciding_entry(memory, tables, key_of(tuple), port_count);
  __syncwarp();
  put_result(results, i, number_of_entry(entry, numbers.rules, numbers.deciding));
}

template <typename Memory>
class RfcFilter final : public KeyFilter {
 public:
  RfcFilter(gpu::DeviceBuffer<std::uint64_t> copy, Memory memory, const classify::RfcTables& tables, Numbers numbers)
      : copy_(std::move(copy)),
        memory_(memory),
        tables_(tables.ipv4),
        port_count_(tables.port_count),
        numbers_(numbers) {}

  bool enqueue(const KeysAt& keys, std::uint32_t count, const ResultsAt& results, unsigned block,
               CUstream_st* stream) const noexcept override {
    const auto kernel = keys.texture != 0 ? classify_keys<true, Memory> : classify_keys<false, Memory>;
    return launch_keys(kernel, count, block, stream, keys, count, results, memory_, tables_, port_count_, numbers_);
  }

 private:
  gpu::DeviceBuffer<std::uint64_t> copy_;
  Memory memory_;
  classify::RfcFamily tables_;
  std::uint32_t port_count_;
  Numbers numbers_;
};

}  // namespace

std::unique_ptr<KeyFilter> make_rfc_filter(const classify::RfcTables& tables, std::uint32_t rules, Deciding deciding) {
  gpu::DeviceBuffer<std::uint64_t> copy{std::span<const std::uint64_t>(tables.memory)};
  const GlobalMemory memory = memory_of(copy);
  return std::make_unique<RfcFilter<GlobalMemory>>(std::move(copy), memory, tables, Numbers{rules, deciding});
}

std::unique_ptr<KeyFilter> make_constant_rfc_filter(const classify::RfcTables& tables, std::uint32_t rules,
                                                    Deciding deciding) {
  const std::size_t bytes = std::min(tables.memory_bytes(), kConstantBytes);
  gpu::check(cudaMemcpyToSymbol(g_tables, tables.memory.data(), bytes));
  gpu::DeviceBuffer<std::uint64_t> copy{std::span<const std::uint64_t>(tables.memory)};
  const ConstantMemory memory{memory_of(copy)};
  return std::make_unique<RfcFilter<ConstantMemory>>(std::move(copy), memory, tables, Numbers{rules, deciding});
}

}  // namespace penstock::experiments
