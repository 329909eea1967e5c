// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts CUDA status codes to exceptions.

#pragma once

#include <cuda_runtime_api.h>

#include <source_location>

#include "gpu/cuda_error.h"

namespace penstock::gpu {

[[noreturn]] void throw_cuda_error(cudaError_t status, std::source_location where);

/// Throws CudaError with the caller's location unless `status` is success. For set-up code only.
inline void check(cudaError_t status, std::source_location where = std::source_location::current()) {
  if (status != cudaSuccess) [[unlikely]]
    throw_cuda_error(status, where);
}

/// Call it directly after a kernel launch, which returns no status itself.
inline void check_launch(std::source_location where = std::source_location::current()) {
  check(cudaGetLastError(), where);
}

}  // namespace penstock::gpu
