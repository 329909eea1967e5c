// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "ring/packet_ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <span>
#include <type_traits>

#include "base/shared_memory.h"

namespace penstock::ring {

void PacketRing::Unmap::operator()(void* memory) const noexcept { unmap_memory(memory, length); }

PacketRing::Mapping PacketRing::map(std::size_t length, bool shared) {
  return Mapping(map_memory(length, shared), Unmap{length});
}

namespace {

/// Aligns the start of all batches like a frame.
RingShape aligned(RingShape shape) noexcept {
  shape.batch_bytes = shape.batch_bytes / kFrameAlignment * kFrameAlignment;
  return shape;
}

}  // namespace

PacketRing::PacketRing(const RingShape& shape, const PacketMemory* lent)
    : bytes_(nullptr, Unmap{0}),
      descriptors_(nullptr, Unmap{0}),
      shape_(aligned(shape)),
      lent_(lent),
      batches_(nullptr, Unmap{0}),
      most_batches_(shape.waiting_batches + shape.taken_batches + 1),
      waiting_(std::make_unique_for_overwrite<Batch*[]>(shape.waiting_batches)) {
  const std::size_t batches = most_batches_ + (shape_.shared ? 1 : 0);
  bytes_ = map(batches * shape_.batch_bytes, shape_.shared);
  // Huge pages reduce TLB misses. They are not used if small packets leave most of a batch's memory untouched, since it
  // would be allocated anyway.
  const bool dense = shape_.batch_packets * kSmallestFrame >= shape_.batch_bytes / 2;
  if (dense) ::madvise(bytes_.get(), bytes_.get_deleter().length, MADV_HUGEPAGE);
  descriptors_ = map(batches * shape.batch_packets * sizeof(PacketDescriptor), shape_.shared);
  batches_ = map(batches * sizeof(Batch));
  free_.reserve(most_batches_);
  if (shape_.shared) spare_ = make_batch(most_batches_);
}

void PacketRing::make_resident(const std::stop_token& stop) noexcept {
  constexpr std::size_t kPart = std::size_t{64} << 20;
  const std::span<std::uint8_t> memory(static_cast<std::uint8_t*>(descriptors_.get()),
                                       descriptors_.get_deleter().length);
  // No batch has packets yet, so nothing is overwritten.
  for (std::size_t at = 0; at < memory.size() && !stop.stop_requested(); at += kPart)
    std::ranges::fill(memory.subspan(at, std::min(kPart, memory.size() - at)), std::uint8_t{0});
}

Batch* PacketRing::make_batch(std::size_t i) noexcept {
  static_assert(std::is_trivially_destructible_v<Batch>);  // so unmapping is enough
  return new (static_cast<Batch*>(batches_.get()) + i) Batch(
      std::span(static_cast<std::uint8_t*>(bytes_.get()) + i * shape_.batch_bytes, shape_.batch_bytes),
      std::span(static_cast<PacketDescriptor*>(descriptors_.get()) + i * shape_.batch_packets, shape_.batch_packets),
      shape_.room, lent_, shape_.most_lent_bytes);
}

Batch* PacketRing::filling() noexcept {
  if (filling_ != nullptr) return filling_;
  if (waiting_count_ == shape_.waiting_batches || waiting_bytes_ >= shape_.waiting_bytes) return nullptr;
  if (!free_.empty()) {
    filling_ = free_.back();
    free_.pop_back();
  } else if (made_batches_ < most_batches_) {
    filling_ = make_batch(made_batches_++);
  } else {
    return nullptr;
  }
  filling_->reset(next_sequence_);
  return filling_;
}

void PacketRing::close_filling() noexcept {
  next_sequence_ = filling_->next_sequence();
  waiting_bytes_ += filling_->used_bytes();
  waiting_[(waiting_first_ + waiting_count_) % shape_.waiting_batches] = filling_;
  ++waiting_count_;
  filling_ = nullptr;
}

Batch* PacketRing::take() noexcept {
  if (waiting_count_ == 0) return nullptr;
  Batch* batch = waiting_[waiting_first_];
  waiting_first_ = (waiting_first_ + 1) % shape_.waiting_batches;
  --waiting_count_;
  waiting_bytes_ -= batch->used_bytes();
  return batch;
}

void PacketRing::release(Batch* batch) noexcept { free_.push_back(batch); }

}  // namespace penstock::ring
