// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The packet ring (Gaviss's Shared Packet Buffer) on the host: owns the memory of all batches of one worker, and tracks
// their states: free → filling → waiting → taken → free. Belongs to one worker, so it has no locks.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "packet/batch.h"

namespace penstock::ring {

/// The smallest Ethernet frame; it limits the number of packets in a given number of bytes.
inline constexpr std::size_t kSmallestFrame = 64;

/// The size of a ring for a data rate with a latency of at most `latency`: Gaviss's equation 1, with its α.
[[nodiscard]] constexpr std::size_t ring_bytes(double bytes_per_second, std::chrono::nanoseconds latency) noexcept {
  constexpr double kAlpha = 1.6;
  return static_cast<std::size_t>(bytes_per_second * std::chrono::duration<double>(latency).count() * kAlpha);
}

struct RingShape {
  std::size_t batch_bytes = 0;
  std::size_t batch_packets = 0;
  std::size_t waiting_batches = 1;  // the most batches that wait
  // capacity of the waiting queue: no batch is opened while waiting batches hold this many bytes
  std::size_t waiting_bytes = 0;
  std::size_t taken_batches = 1;  // the most batches that are processed at the same time
  FrameRoom room;
  std::uint32_t most_lent_bytes = Batch::kNoLimit;  // see Batch
  bool shared = false;                              // another process maps frames and descriptors; has a spare batch
};

class PacketRing {
 public:
  /// `lent`: the packet memory in which its batches may have frames that are lent; borrowed, null: none. Throws
  /// std::bad_alloc if there is not enough address space. Memory is only allocated when it is first used.
  explicit PacketRing(const RingShape& shape, const PacketMemory* lent = nullptr);

  /// The batch that is being filled, opened if necessary; null if the waiting queue is full.
  [[nodiscard]] Batch* filling() noexcept;
  /// Moves the batch that is being filled to the waiting ones. There must be one, and it must have packets.
  void close_filling() noexcept;
  /// Takes the oldest waiting batch for processing; null if none waits.
  [[nodiscard]] Batch* take() noexcept;
  /// Frees a taken batch.
  void release(Batch* batch) noexcept;
  /// A batch of a shared ring that is never filled with packets: for trying lanes in another thread while packets flow.
  [[nodiscard]] Batch& spare() const noexcept { return *spare_; }

  /// Makes the kernel allocate the descriptors' pages now instead of when batches are first filled. Pinning does this
  /// for the frames. Returns early if `stop` is requested.
  void make_resident(const std::stop_token& stop) noexcept;

  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_count_; }
  [[nodiscard]] std::size_t waiting_bytes() const noexcept { return waiting_bytes_; }
  [[nodiscard]] const RingShape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t most_batches() const noexcept { return most_batches_; }
  /// The memory of the frames of all batches.
  [[nodiscard]] std::span<std::uint8_t> memory() noexcept {
    return {static_cast<std::uint8_t*>(bytes_.get()), bytes_.get_deleter().length};
  }
  /// The memory of their descriptors.
  [[nodiscard]] std::span<std::uint8_t> descriptor_memory() noexcept {
    return {static_cast<std::uint8_t*>(descriptors_.get()), descriptors_.get_deleter().length};
  }
  /// Where lent frames can be.
  [[nodiscard]] std::span<const std::span<std::uint8_t>> lent_memory() const noexcept {
    return lent_ == nullptr ? std::span<const std::span<std::uint8_t>>() : lent_->lent();
  }

 private:
  struct Unmap {
    std::size_t length;
    void operator()(void* memory) const noexcept;
  };
  using Mapping = std::unique_ptr<void, Unmap>;
  static Mapping map(std::size_t length, bool shared = false);
  Batch* make_batch(std::size_t index) noexcept;

  Mapping bytes_;
  Mapping descriptors_;
  const RingShape shape_;
  const PacketMemory* const lent_;
  Mapping batches_;  // made on demand, so that a queue of many small batches uses no memory before it is needed
  std::size_t most_batches_;
  std::size_t made_batches_ = 0;
  Batch* spare_ = nullptr;             // has the last part of the memory; null: the ring is not shared
  std::vector<Batch*> free_;           // a stack: the batch that was used last is most likely in the caches
  std::unique_ptr<Batch*[]> waiting_;  // circular; the oldest is at waiting_first_
  std::size_t waiting_bytes_ = 0;
  std::size_t waiting_first_ = 0;
  std::size_t waiting_count_ = 0;
  Batch* filling_ = nullptr;
  std::uint32_t next_sequence_ = 0;
};

}  // namespace penstock::ring
