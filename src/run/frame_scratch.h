// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory in which the frames of one batch have room to grow. In a chain on a GPU batches are compact, and frames that
// come back from there lie one right behind the other; what a CPU twin is to make longer is copied here first. It owns
// the memory, which is only used once frames lie there.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "packet/batch.h"

namespace penstock::run {

class FrameScratch {
 public:
  /// Of a chain that needs none.
  FrameScratch() = default;
  /// For batches of at most so many bytes and packets in a chain whose functions grow frames by `growth` in all. Throws
  /// std::bad_alloc where the address space is not to be had.
  FrameScratch(std::size_t batch_bytes, std::size_t batch_packets, FrameRoom growth);

  /// For the frames of such a batch, however far they have grown.
  [[nodiscard]] static std::size_t bytes_for(std::size_t batch_bytes, std::size_t batch_packets,
                                             FrameRoom growth) noexcept {
    return batch_bytes + batch_packets * (aligned_frame(growth.head) + 2 * aligned_frame(growth.head + growth.tail));
  }

  /// The next batch begins.
  void reset() noexcept;
  /// The frame of the batch's packet `packet`, with room around it for all that the chain's functions add: where it is,
  /// if it lies here already, else its copy. Packets that first come here one behind the other lie so.
  [[nodiscard]] std::uint8_t* with_room(std::size_t packet, std::uint8_t* frame, std::uint32_t length) noexcept;

  [[nodiscard]] std::span<std::uint8_t> memory() const noexcept {
    return {static_cast<std::uint8_t*>(bytes_.get()), bytes_.get_deleter().length};
  }

 private:
  struct Unmap {
    std::size_t length;
    void operator()(void* memory) const noexcept;
  };
  std::unique_ptr<void, Unmap> bytes_{nullptr, Unmap{0}};
  FrameRoom growth_;
  std::size_t used_ = 0;
  std::vector<std::uint8_t*> slots_;  // by packet; null where it has none
};

}  // namespace penstock::run
