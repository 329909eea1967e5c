// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "gpu/pinned_region.h"

#include <cuda_runtime_api.h>

#include "gpu/check.cuh"

namespace penstock::gpu {

PinnedRegion::PinnedRegion(std::span<std::uint8_t> memory) : memory_(memory.data()) {
  check(cudaHostRegister(memory_, memory.size(), cudaHostRegisterPortable | cudaHostRegisterMapped));
}

PinnedRegion::~PinnedRegion() { static_cast<void>(cudaHostUnregister(memory_)); }

}  // namespace penstock::gpu
