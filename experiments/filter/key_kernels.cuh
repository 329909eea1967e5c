// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How kernels of key filters read keys and write results.

#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "experiments/filter/key_filter.h"

namespace penstock::experiments {

inline constexpr unsigned kMostThreads = 1024;  // in a block

/// Reads a key in one load of 16 bytes.
template <bool kTexture>
__device__ __forceinline__ KeyWords key_at(const KeysAt& keys, std::uint32_t i) {
  uint4 words;
  if constexpr (kTexture) {
    words = tex1Dfetch<uint4>(keys.texture, static_cast<int>(i));
  } else {
    words = __ldg(reinterpret_cast<const uint4*>(keys.memory) + i);
  }
  return {{words.x, words.y, words.z, words.w}};
}

/// For whole warps.
__device__ __forceinline__ void put_result(const ResultsAt& results, std::uint32_t i, std::uint32_t number) {
  switch (results.bits) {
    case 1: {
      const std::uint32_t verdicts = __ballot_sync(0xffffffff, number != 0);
      if (i % kWarp == 0) static_cast<std::uint32_t*>(results.memory)[i / kWarp] = verdicts;
      break;
    }
    case 8: static_cast<std::uint8_t*>(results.memory)[i] = number != 0 ? 1 : 0; break;
    case 16: static_cast<std::uint16_t*>(results.memory)[i] = static_cast<std::uint16_t>(number); break;
    default: static_cast<std::uint32_t*>(results.memory)[i] = number; break;
  }
}

/// Launches a thread for each key.
template <typename... Parameters, typename... Arguments>
[[nodiscard]] bool launch_keys(void (*kernel)(Parameters...), std::uint32_t count, unsigned block, CUstream_st* stream,
                               const Arguments&... arguments) noexcept {
  cudaLaunchConfig_t launch{};
  launch.gridDim = (count + block - 1) / block;
  launch.blockDim = block;
  launch.stream = stream;
  return cudaLaunchKernelEx(&launch, kernel, Parameters(arguments)...) == cudaSuccess;
}

}  // namespace penstock::experiments
