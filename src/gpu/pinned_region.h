// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Host memory that somebody else owns, page-locked for as long as this lives: copies from and to it run beside the
// host, and kernels of every device use its addresses as they are.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::gpu {

class PinnedRegion {
 public:
  /// Borrows the memory, and has the kernel provide all of it now. Throws CudaError.
  explicit PinnedRegion(std::span<std::uint8_t> memory);
  PinnedRegion(const PinnedRegion&) = delete;
  PinnedRegion& operator=(const PinnedRegion&) = delete;
  ~PinnedRegion();

 private:
  void* memory_;
};

}  // namespace penstock::gpu
