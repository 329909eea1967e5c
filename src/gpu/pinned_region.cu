// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "gpu/pinned_region.h"

#include <cuda_runtime_api.h>

#include "base/populate.h"
#include "gpu/check.cuh"

namespace penstock::gpu {

/// Pages are allocated and zeroed before the driver locks them: it would do that itself while it holds a lock for which
/// all launches and copies of this process wait. In slices, between which others get the address space. (Registrations
/// cannot be in slices as well: a copy must not cross two of them.) What the system cannot allocate before, the driver
/// does.
PinnedRegion::PinnedRegion(std::span<std::uint8_t> memory) : memory_(memory.data()) {
  populate(memory);
  check(cudaHostRegister(memory_, memory.size(), cudaHostRegisterPortable | cudaHostRegisterMapped));
}

PinnedRegion::~PinnedRegion() { static_cast<void>(cudaHostUnregister(memory_)); }

}  // namespace penstock::gpu
