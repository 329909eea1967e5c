// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of a network function that runs on a GPU, and what it is given there. No CUDA header is needed here.

#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/stream.h"
#include "packet/packet.h"

namespace penstock::gpu {

/// The packets of one batch in device memory; passed by value to kernels.
struct DevicePackets {
  std::uint8_t* frames = nullptr;  // what the descriptors' offsets count in; of packets that cross as headers, only
                                   // the first bytes are there, whatever `length` says
  PacketDescriptor* packets = nullptr;  // `count` of them, parsed; timestamps and sequences are the host's alone
  std::uint32_t count = 0;
  std::uint8_t function = 0;          // the function's position in the chain: for Verdict::nf
  std::byte* findings = nullptr;      // count * NfTraits::findings_bytes bytes, aligned to 8: for the finish stage
  const std::byte* states = nullptr;  // count * NfTraits::state_bytes, the same: from the state stage
};

/// What a stage is made for.
struct StageUse {
  unsigned worker = 0;
  std::uint32_t batch_packets = 1;  // the most of a batch
  /// Of the device, that its kernels may fill beside those of other functions and batches (G-NET's spatial sharing); 0:
  /// all. It bounds the blocks of kernels that would fill the device by themselves: no more are launched than so many
  /// multiprocessors hold at once; which ones is for the device to choose. A kernel with a thread for each packet has
  /// too few blocks to be bounded, and says nothing of it.
  std::uint32_t multiprocessors = 0;
};

/// The GPU stage of one network function, for one batch in flight at a time. It belongs to the device that was current
/// when it was made.
class GpuStage {
 public:
  virtual ~GpuStage() = default;
  /// A batch boundary: nothing of this stage is on the device. Tables may be swapped here and nowhere else.
  virtual void begin_batch() noexcept {}
  /// Enqueues the stage: for each packet whose verdict is `forward` it decides and writes the verdict, with `nf` set.
  /// Returns at once; false when the driver refuses the work. What is enqueued may be collected into a CUDA graph:
  /// nothing but launches, asynchronous copies and memsets, and turns (turns.h). Where the driver refuses that graph it
  /// is called again for the same batch. Before the first packets come batches of frames of zeros, to load the
  /// kernels, of which nothing may be kept.
  [[nodiscard]] virtual bool enqueue(const DevicePackets& batch, const Stream& stream) noexcept = 0;
  /// Enqueues the kernels that StageUse::multiprocessors bounds as if each packet of the batch were one of theirs,
  /// whatever the tables say of it, so that they can be timed before the first packets. Frames may be changed; nothing
  /// is counted or kept. False when the driver refuses, and where it has no such kernels.
  [[nodiscard]] virtual bool rehearse(const DevicePackets& batch, const Stream& stream) noexcept {
    static_cast<void>(batch);
    static_cast<void>(stream);
    return false;
  }
  /// The device has failed the batch that was enqueued last: perhaps none of it has run, or a part. Nothing of it is on
  /// the device any more, and its packets finish on the CPU twins.
  virtual void abandoned() noexcept {}
};

}  // namespace penstock::gpu
