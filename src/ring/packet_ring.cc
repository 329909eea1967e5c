// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "ring/packet_ring.h"

#include <sys/mman.h>

#include <new>

namespace penstock::ring {

void PacketRing::Unmap::operator()(void* memory) const noexcept { ::munmap(memory, length); }

PacketRing::Mapping PacketRing::map(std::size_t length) {
  void* memory = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  ::madvise(memory, length, MADV_HUGEPAGE);  // fewer TLB misses where the kernel has huge pages to give
  return Mapping(memory, Unmap{length});
}

PacketRing::PacketRing(const RingShape& shape)
    : bytes_(nullptr, Unmap{0}), descriptors_(nullptr, Unmap{0}), waiting_(shape.waiting_batches) {
  const std::size_t count = shape.waiting_batches + shape.taken_batches + 1;
  bytes_ = map(count * shape.batch_bytes);
  descriptors_ = map(count * shape.batch_packets * sizeof(PacketDescriptor));
  batches_.reserve(count);
  free_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    batches_.emplace_back(
        std::span(static_cast<std::uint8_t*>(bytes_.get()) + i * shape.batch_bytes, shape.batch_bytes),
        std::span(static_cast<PacketDescriptor*>(descriptors_.get()) + i * shape.batch_packets, shape.batch_packets),
        shape.room);
  }
  for (std::size_t i = count; i > 0; --i) free_.push_back(&batches_[i - 1]);
}

Batch* PacketRing::filling() noexcept {
  if (filling_ != nullptr) return filling_;
  if (waiting_count_ == waiting_.size() || free_.empty()) return nullptr;
  filling_ = free_.back();
  free_.pop_back();
  filling_->reset(next_sequence_);
  return filling_;
}

void PacketRing::close_filling() noexcept {
  next_sequence_ = filling_->next_sequence();
  waiting_[(waiting_first_ + waiting_count_) % waiting_.size()] = filling_;
  ++waiting_count_;
  filling_ = nullptr;
}

Batch* PacketRing::take() noexcept {
  if (waiting_count_ == 0) return nullptr;
  Batch* batch = waiting_[waiting_first_];
  waiting_first_ = (waiting_first_ + 1) % waiting_.size();
  --waiting_count_;
  return batch;
}

void PacketRing::release(Batch* batch) noexcept { free_.push_back(batch); }

}  // namespace penstock::ring
