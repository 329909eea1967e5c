// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a worker needs to run its chain on a device: a ring that the device can access, and lanes with the functions'
// stages there.

#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "ring/packet_ring.h"
#include "run/chain.h"
#include "run/counters.h"
#include "run/epoch.h"
#include "run/executor.h"
#include "run/taps.h"

namespace penstock::run {

/// The largest number of batches that this worker has on the device. With shared queueing, the streams are shared out
/// as evenly as possible, and the first workers have one more; each has at least one.
[[nodiscard]] unsigned streams_of(const RunSettings& settings, unsigned worker) noexcept;
/// The largest number of batches that it has in flight: as many, but at a proxy at least two, so that one waits there,
/// unless transfers are direct or there is a latency bound.
[[nodiscard]] unsigned lanes_of(const RunSettings& settings, unsigned worker) noexcept;
/// What the run asks of its proxy: `proxy_limits`, and no more batches on the device than its workers have streams.
[[nodiscard]] RemoteLimits limits_at_proxy(const RunSettings& settings) noexcept;

/// Headroom and tailroom of frames in a batch: enough for the CPU functions before the first one on the device. Later
/// functions get room elsewhere, on the device or in FrameScratch.
[[nodiscard]] FrameRoom room_in_batches(const Chain& chain);

/// The largest length for which a lent frame takes room in a batch: kHeaderBytes if nothing but headers ever crosses,
/// and no function needs room for frames.
[[nodiscard]] std::uint32_t most_lent_bytes(const Chain& chain);

/// Lets the run's devices use memory that ports lend; empty on the CPU.
[[nodiscard]] PacketMemory::Register registers_packet_memory(const RunSettings& settings);

/// Makes a worker's stages of these functions, in the chain's place, with those for each of its lanes; without the
/// latter if its device is lost, so that tables can still be changed. Throws CudaError, for example if memory lacks.
[[nodiscard]] std::unique_ptr<StageSet> make_device_stages(const Chain& chain, std::span<const NamedFunction> functions,
                                                           const plan::DevicePlan& plan, unsigned worker,
                                                           std::size_t batch_packets);

/// Chooses the worker's device. Borrows all arguments. Throws CudaError.
[[nodiscard]] std::unique_ptr<Executor> make_executor_on_device(const Chain& chain, unsigned worker,
                                                                ring::PacketRing& ring, WorkerCounters& counters,
                                                                Taps* taps);

}  // namespace penstock::run
