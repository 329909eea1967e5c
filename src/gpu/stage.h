// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPU part of a network function, and its inputs. Needs no CUDA header.

#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/stream.h"
#include "packet/device_stage.h"
#include "packet/packet.h"

namespace penstock::gpu {

/// The packets of one batch in device memory; passed by value to kernels.
struct DevicePackets {
  std::uint8_t* frames = nullptr;       // base of the descriptors' offsets; for packets that cross as headers, only the
                                        // first bytes are present, regardless of `length`
  PacketDescriptor* packets = nullptr;  // `count` of them, parsed; timestamps and sequences exist only on the host
  std::uint32_t count = 0;
  std::uint8_t function = 0;          // the function's position in the chain, for Verdict::nf
  std::byte* findings = nullptr;      // count * NfTraits::findings_bytes, aligned to 8: output for the finish stage
  const std::byte* states = nullptr;  // count * NfTraits::state_bytes, aligned to 8: input from the state stage
};

/// The GPU stage of one network function, for one batch in flight at a time. Belongs to the device that was current
/// when it was made.
class GpuStage : public DeviceStage {
 public:
  /// Enqueues the stage: for each packet whose verdict is `forward`, it decides and writes the verdict with `nf` set.
  /// Does not block; false if the driver refuses the work. The work may be collected into a CUDA graph, so it may
  /// consist only of launches, asynchronous copies and memsets, and turns (turns.h). If the driver refuses the graph,
  /// this is called again for the same batch. Before the first packets, it is called with batches of all-zero frames to
  /// load the kernels; these must leave no trace.
  [[nodiscard]] virtual bool enqueue(const DevicePackets& batch, const Stream& stream) noexcept = 0;
  /// Enqueues the kernels that StageUse::multiprocessors limits, as if they had to process every packet of the batch,
  /// whatever the tables say, so that they can be timed before the first packets. May change frames, but must not count
  /// or store anything. False if the driver refuses, or if there are no such kernels.
  [[nodiscard]] virtual bool rehearse(const DevicePackets& batch, const Stream& stream) noexcept {
    static_cast<void>(batch);
    static_cast<void>(stream);
    return false;
  }
};

}  // namespace penstock::gpu
