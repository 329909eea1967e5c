// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A batch's twin on the device: the frames as they lie in the host's batch, an index of them, and what the kernels find
// out. Each call enqueues work in a stream and returns at once; an event recorded behind it tells when it is done. It
// owns the device's memory and the pinned memory that index and results cross from and to. One worker's own.
//
//     host     frames ──────┐   index ──────┐                       ┌─▶ flow hashes, layouts
//     upload()              ▼               ▼        download()     │
//     device   frames ──▶ parse() ◀── index      ──▶ flow hashes, layouts

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpu/memory.h"
#include "gpu/stream.h"
#include "packet/batch.h"
#include "packet/layout.h"

namespace penstock::ring {

class DeviceBatch {
 public:
  /// For batches of at most so many bytes and packets; throws CudaError.
  DeviceBatch(std::size_t capacity_bytes, std::size_t capacity_packets);

  // False when the driver refuses the work: the context is lost.

  /// The batch's frames must lie in pinned memory, and stay as they are until the copy is done; its descriptors are
  /// read at once. What was enqueued for the batch before must be done.
  [[nodiscard]] bool upload(const Batch& batch, const gpu::Stream& stream) noexcept;

  /// Finds each packet's layout and flow hash, as the shared stack does.
  [[nodiscard]] bool parse(const gpu::Stream& stream) noexcept;

  [[nodiscard]] bool download(const gpu::Stream& stream) noexcept;

  // What was downloaded: in the order of the batch's packets, valid until the next upload.
  [[nodiscard]] std::span<const std::uint32_t> flow_hashes() const noexcept;
  [[nodiscard]] std::span<const PacketLayout> layouts() const noexcept;

 private:
  std::size_t capacity_packets_;
  std::size_t count_ = 0;
  gpu::DeviceBuffer<std::uint8_t> frames_;
  gpu::PinnedBuffer<std::byte> index_;
  gpu::DeviceBuffer<std::byte> device_index_;
  gpu::PinnedBuffer<std::byte> results_;
  gpu::DeviceBuffer<std::byte> device_results_;
};

}  // namespace penstock::ring
