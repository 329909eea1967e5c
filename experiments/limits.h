// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What bounds this machine, measured in the same run as the points that are held against it. The values, all GB/s
// (10^9 bytes):
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

/// `cores`: all that the process may run on. Takes about half a second, and half a second for each GPU; ends early,
/// with what is there, once `stop` is set. Throws gpu::CudaError.
[[nodiscard]] Point measure_limits(unsigned cores, std::span<const gpu::Device> gpus, const std::atomic<bool>& stop);

/// The most packets (keys, frames) a second, in millions, that PCIe carries when each is `up` bytes to the device and
/// `down` bytes back: the direction that carries more bounds them. It has its own rate D where nothing crosses the
/// other way, B where as much does, and with a share q of its bytes D / (1 + q (D - B) / B): what a byte costs it grows
/// in proportion to what crosses against it. B alone where D was not measured. Of the run's first `gpus` GPUs together:
/// what was measured of so many at the same time, else so many times one's. Nothing without a GPU.
[[nodiscard]] std::optional<double> pcie_limit_mpps(const Point& limits, double up, double down, std::size_t gpus = 1);

}  // namespace penstock::experiments
