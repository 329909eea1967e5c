// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory where the frames of one batch have room to grow. In a chain on a device, batches are compact, and frames that
// return from the device follow each other without gaps; a frame that a CPU twin may make longer is copied here first.
// Owns the memory; its pages are only used once frames are stored there.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/shared_memory.h"
#include "packet/batch.h"

namespace penstock::run {

class FrameScratch {
 public:
  /// For a chain that needs none.
  FrameScratch() = default;
  /// For batches of at most `batch_bytes` and `batch_packets`, in a chain whose functions together add at most `growth`
  /// to a frame. `shared`: another process maps it. Throws std::bad_alloc if the address space cannot be mapped.
  FrameScratch(std::size_t batch_bytes, std::size_t batch_packets, FrameRoom growth, bool shared = false);

  /// Bytes that hold all frames of such a batch at their largest.
  [[nodiscard]] static std::size_t bytes_for(std::size_t batch_bytes, std::size_t batch_packets,
                                             FrameRoom growth) noexcept {
    return batch_bytes + batch_packets * (aligned_frame(growth.head) + 2 * aligned_frame(growth.head + growth.tail));
  }

  /// Called when a new batch begins.
  void reset() noexcept;
  /// Whether no frame has been copied here since.
  [[nodiscard]] bool empty() const noexcept { return used_ == 0; }
  /// Reserves the memory for packet `packet`'s frame, of this length, after those that were reserved before.
  void reserve(std::size_t packet, std::uint32_t length) noexcept;
  /// Returns packet `packet`'s frame with room for everything that the chain's functions add: the frame itself if it is
  /// already here, else a copy. Frames that are reserved or first copied in packet order are stored in packet order.
  [[nodiscard]] std::uint8_t* with_room(std::size_t packet, std::uint8_t* frame, std::uint32_t length) noexcept;

  [[nodiscard]] std::span<std::uint8_t> memory() const noexcept { return memory_.bytes(); }

 private:
  MappedMemory memory_;
  FrameRoom growth_;
  std::size_t used_ = 0;
  std::vector<std::uint8_t*> slots_;  // by packet; null if it has none
};

}  // namespace penstock::run
