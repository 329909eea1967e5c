// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts StageUse::multiprocessors to blocks of a kernel.

#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "gpu/check.cuh"

namespace penstock::gpu {

/// The number of multiprocessors of the current device. Throws CudaError.
[[nodiscard]] inline std::uint32_t multiprocessors_of_device() {
  int device = 0;
  int multiprocessors = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  return static_cast<std::uint32_t>(multiprocessors);
}

/// The number of multiprocessors for a share, which may be 0 (all) or more than the device has. Throws CudaError.
[[nodiscard]] inline std::uint32_t multiprocessors_of_share(std::uint32_t share) {
  const std::uint32_t all = multiprocessors_of_device();
  return share == 0 ? all : std::min(share, all);
}

/// The most blocks of a kernel whose warps loop until no work is left: as many as the share's multiprocessors can hold
/// at once. Unlimited if the share is the whole device, since waiting blocks cost such a kernel nothing. Throws
/// CudaError.
template <typename... Parameters>
[[nodiscard]] std::uint32_t most_blocks_of_share(std::uint32_t share, void (*kernel)(Parameters...), unsigned threads,
                                                 std::size_t shared_bytes = 0) {
  if (share == 0) return std::numeric_limits<std::uint32_t>::max();
  int blocks = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, static_cast<int>(threads), shared_bytes));
  return static_cast<std::uint32_t>(std::max(1, blocks)) * multiprocessors_of_share(share);
}

}  // namespace penstock::gpu
