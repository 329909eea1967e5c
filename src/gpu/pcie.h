// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What this machine's PCIe really carries: the limit that every end-to-end figure is held against.

#pragma once

#include <span>

namespace penstock::gpu {

/// GB/s (10^9 bytes), with pinned memory and 16 MiB copies; medians of several runs.
struct PcieRates {
  double to_device = 0;      // alone
  double to_host = 0;        // alone
  double both_each_way = 0;  // each direction while both run
};

/// Of all of these at the same time, and of each as many bytes: what they carry together. Takes about 0.3 s, and 32 MiB
/// on each side of each; throws CudaError.
[[nodiscard]] PcieRates measure_pcie(std::span<const int> devices);
[[nodiscard]] inline PcieRates measure_pcie(int device) { return measure_pcie(std::span(&device, 1)); }

}  // namespace penstock::gpu
