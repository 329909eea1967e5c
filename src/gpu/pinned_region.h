// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Page-locks host memory that it does not own, for its lifetime. Copies from and to the memory are then asynchronous,
// and kernels of every device can use its addresses directly.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::gpu {

class PinnedRegion {
 public:
  /// Borrows the memory, and makes the kernel allocate all its pages now. Throws CudaError.
  explicit PinnedRegion(std::span<std::uint8_t> memory);
  PinnedRegion(const PinnedRegion&) = delete;
  PinnedRegion& operator=(const PinnedRegion&) = delete;
  ~PinnedRegion();

 private:
  void* memory_;
};

}  // namespace penstock::gpu
