// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "gpu/pinned_region.h"

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <algorithm>

#include "gpu/check.cuh"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace penstock::gpu {

namespace {

/// Pages are allocated and zeroed before the driver locks them: it would do that itself while it holds a lock for which
/// all launches and copies of this process wait. In slices, between which others get the address space. (Registrations
/// cannot be in slices as well: a copy must not cross two of them.) If the system cannot do it, which Linux before 5.14
/// cannot, the driver allocates what is missing.
void allocate_pages(std::span<std::uint8_t> memory) noexcept {
  constexpr std::size_t kSlice = 4 << 20;
  for (; !memory.empty(); memory = memory.subspan(std::min(kSlice, memory.size()))) {
    if (::madvise(memory.data(), std::min(kSlice, memory.size()), MADV_POPULATE_WRITE) != 0) return;
  }
}

}  // namespace

PinnedRegion::PinnedRegion(std::span<std::uint8_t> memory) : memory_(memory.data()) {
  allocate_pages(memory);
  check(cudaHostRegister(memory_, memory.size(), cudaHostRegisterPortable | cudaHostRegisterMapped));
}

PinnedRegion::~PinnedRegion() { static_cast<void>(cudaHostUnregister(memory_)); }

}  // namespace penstock::gpu
