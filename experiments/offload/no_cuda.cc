// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The twin of the .cu file in a build without CUDA, where there is never a device to look up on.

#include "experiments/offload/lookup_kernels.h"

namespace penstock::experiments {

bool enqueue_lookups(const TableView&, const std::byte*, std::uint32_t*, std::size_t, const gpu::Stream&) noexcept {
  return false;
}

}  // namespace penstock::experiments
