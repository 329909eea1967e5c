// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Replaces the .cu file in builds without CUDA, which have no device to look up on.

#include "experiments/offload/lookup_kernels.h"

namespace penstock::experiments {

bool enqueue_lookups(const TableView&, const std::byte*, std::uint32_t*, std::size_t, const gpu::Stream&) noexcept {
  return false;
}

}  // namespace penstock::experiments
