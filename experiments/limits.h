// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The limits of this machine, measured in the same run as the points that are compared with them. All values are in
// GB/s (10^9 bytes):
//
//   memory_copy_one_core, memory_copy_all_cores    bytes copied from host memory to host memory, counted once
//   pcie_to_device, pcie_to_host                   alone, of the first GPU of the run (gpu/pcie.h)
//   pcie_both_each_way                             each direction while both run
//   pcie_..._gpu1                                  of another GPU, by its index
//   pcie_..._of_2                                  of the run's first two GPUs at the same time; _of_4, _of_8

#pragma once

#include <atomic>
#include <span>

#include "experiments/point.h"
#include "gpu/devices.h"

namespace penstock::experiments {

/// `cores`: all cores that the process may use. Takes about half a second, and another half for each GPU. If `stop` is
/// set, it returns early with the limits measured so far. Throws gpu::CudaError.
[[nodiscard]] Point measure_limits(unsigned cores, std::span<const gpu::Device> gpus, const std::atomic<bool>& stop);

/// The most packets (keys, frames) per second, in millions, that PCIe carries if each is `up` bytes to the device and
/// `down` bytes back. The direction that carries more is the bottleneck. Its rate is D if nothing crosses the other
/// way, and B if as many bytes do. With a share q of its bytes the other way, the rate is D / (1 + q (D - B) / B): the
/// cost of a byte grows linearly with the opposite traffic. If D was not measured, B is used. For the run's first
/// `gpus` GPUs together: as measured for so many at the same time, else a multiple of one GPU's. Returns nothing
/// without a GPU.
[[nodiscard]] std::optional<double> pcie_limit_mpps(const Point& limits, double up, double down, std::size_t gpus = 1);

}  // namespace penstock::experiments
