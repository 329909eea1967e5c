// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of a network function that runs on a device, a processor that is not the host. How it is started is a matter
// between it and the lanes of its processor; for GPUs, see gpu/stage.h.

#pragma once

#include <cstdint>

namespace penstock {

/// Parameters for making a stage.
struct StageUse {
  unsigned worker = 0;
  std::uint32_t batch_packets = 1;  // the most packets of a batch
  /// How many multiprocessors of a GPU its kernels may fill while those of other functions and batches run (G-NET's
  /// spatial sharing); 0: all. It limits the number of blocks of kernels that could fill the whole device: no more are
  /// launched than this many multiprocessors can hold. The device chooses the multiprocessors. Kernels with one thread
  /// per packet have too few blocks to be limited, and ignore this.
  std::uint32_t multiprocessors = 0;
};

/// The stage of one function on one device, for one batch in flight at a time.
class DeviceStage {
 public:
  virtual ~DeviceStage() = default;
  /// A batch boundary: none of this stage's work is on the device. Tables may only be swapped here.
  virtual void begin_batch() noexcept {}
  /// The device has failed during the last batch that was started, of which nothing, a part or all may have run. None
  /// of it is on the device any more, and the CPU twins will finish its packets.
  virtual void abandoned() noexcept {}
};

}  // namespace penstock
