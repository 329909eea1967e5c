// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The packet ring (Gaviss's Shared Packet Buffer), host side: the memory of all batches of one worker, and where each
// batch stands: free → filling → waiting → taken → free. One worker's own: no locks. It owns the memory.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "packet/batch.h"

namespace penstock::ring {

/// Of Ethernet: how many packets there may be in so many bytes.
inline constexpr std::size_t kSmallestFrame = 64;

/// What a ring holds that is to carry this rate with a latency of at most `latency`: Gaviss's equation 1, with its α.
[[nodiscard]] constexpr std::size_t ring_bytes(double bytes_per_second, std::chrono::nanoseconds latency) noexcept {
  constexpr double kAlpha = 1.6;
  return static_cast<std::size_t>(bytes_per_second * std::chrono::duration<double>(latency).count() * kAlpha);
}

struct RingShape {
  std::size_t batch_bytes = 0;
  std::size_t batch_packets = 0;
  std::size_t waiting_batches = 1;  // most that wait
  std::size_t waiting_bytes = 0;    // no batch is opened while those that wait hold so many: the waiting queue
  std::size_t taken_batches = 1;    // most that are being worked on at once
  FrameRoom room;
};

class PacketRing {
 public:
  /// Throws std::bad_alloc where the address space is not to be had. Memory is only used once it is filled.
  explicit PacketRing(const RingShape& shape);

  /// The batch that is being filled, which is opened if need be; null when the waiting queue is full.
  [[nodiscard]] Batch* filling() noexcept;
  /// The batch that is being filled joins the waiting ones. It must exist and hold packets.
  void close_filling() noexcept;
  /// The oldest waiting batch, to be worked on; null when none waits.
  [[nodiscard]] Batch* take() noexcept;
  /// A taken batch is done with.
  void release(Batch* batch) noexcept;

  /// Has the kernel provide the memory of the descriptors now, and not when batches are first filled. That of the
  /// frames is so where it is pinned.
  void make_resident() noexcept;

  /// Makes all batches and visits each, empty as it is. To be called while none waits or is taken.
  template <typename Visit>
  void visit_all(Visit visit) noexcept {
    while (made_batches_ < most_batches_) free_.push_back(make_batch());
    for (Batch* batch : free_) visit(*batch);
    if (filling_ != nullptr) visit(*filling_);
  }

  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_count_; }
  [[nodiscard]] const RingShape& shape() const noexcept { return shape_; }
  /// Where the frames of all batches lie.
  [[nodiscard]] std::span<std::uint8_t> memory() noexcept {
    return {static_cast<std::uint8_t*>(bytes_.get()), bytes_.get_deleter().length};
  }

 private:
  struct Unmap {
    std::size_t length;
    void operator()(void* memory) const noexcept;
  };
  using Mapping = std::unique_ptr<void, Unmap>;
  static Mapping map(std::size_t length);
  Batch* make_batch() noexcept;

  Mapping bytes_;
  Mapping descriptors_;
  const RingShape shape_;
  Mapping batches_;  // made as they are needed: a queue of many small batches takes no memory for them before
  std::size_t most_batches_;
  std::size_t made_batches_ = 0;
  std::vector<Batch*> free_;           // a stack: the batch used last is the warmest in the caches
  std::unique_ptr<Batch*[]> waiting_;  // a circle, oldest at waiting_first_
  std::size_t waiting_bytes_ = 0;
  std::size_t waiting_first_ = 0;
  std::size_t waiting_count_ = 0;
  Batch* filling_ = nullptr;
  std::uint32_t next_sequence_ = 0;
};

}  // namespace penstock::ring
