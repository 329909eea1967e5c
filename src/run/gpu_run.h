// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a worker needs to run its chain on a GPU: its ring pinned, and lanes with the functions' GPU stages on its
// device.

#pragma once

#include <memory>

#include "ring/packet_ring.h"
#include "run/chain.h"
#include "run/counters.h"
#include "run/executor.h"
#include "run/trace.h"

namespace penstock::run {

/// Batches that one worker has on its device at most.
[[nodiscard]] unsigned lanes_of(const RunSettings& settings) noexcept;

/// That frames have in a batch: for the functions on the CPU before the first on a GPU. The others' frames get it where
/// they are worked on.
[[nodiscard]] FrameRoom room_in_batches(const Chain& chain);

/// On the device that falls to this worker. Borrows all of them. Throws CudaError.
[[nodiscard]] std::unique_ptr<Executor> make_gpu_executor(const Chain& chain, unsigned worker, ring::PacketRing& ring,
                                                          WorkerCounters& counters, Trace* trace);

}  // namespace penstock::run
