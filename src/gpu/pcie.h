// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures the PCIe bandwidth of this machine, which is the upper limit for all end-to-end figures.

#pragma once

#include <span>

namespace penstock::gpu {

/// GB/s (10^9 bytes), with pinned memory and 16 MiB copies; medians of several runs.
struct PcieRates {
  double to_device = 0;      // alone
  double to_host = 0;        // alone
  double both_each_way = 0;  // each direction, with both at the same time
};

/// Measures the devices together: all at the same time, with the same number of bytes each, and returns the sum. Takes
/// about 0.3 s, and 32 MiB of host and device memory per device. Throws CudaError.
[[nodiscard]] PcieRates measure_pcie(std::span<const int> devices);
[[nodiscard]] inline PcieRates measure_pcie(int device) { return measure_pcie(std::span(&device, 1)); }

}  // namespace penstock::gpu
