// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/memory_pool.h"

#include <algorithm>
#include <bit>

namespace penstock::stack {
namespace {

constexpr std::size_t kSmallest = std::size_t{1} << MemoryPool::kSmallestOrder;

}  // namespace

MemoryPool::MemoryPool(std::size_t bytes)
    : bytes_(bytes / kSmallest * kSmallest),
      region_(make_huge_memory<std::byte>(std::max(bytes_, kSmallest))),
      free_order_(std::make_unique<std::uint8_t[]>(bytes_ / kSmallest + 1)) {}

/// Carves a free piece out of the unused part of the region: the largest that fits, aligned to its size.
bool MemoryPool::carve() noexcept {
  if (carved_ == bytes_) return false;
  const auto fits = static_cast<unsigned>(std::bit_width(bytes_ - carved_) - 1);
  const auto aligned = carved_ == 0 ? kLargestOrder : static_cast<unsigned>(std::countr_zero(carved_));
  const unsigned order = std::min({fits, aligned, kLargestOrder});
  push(region_.get() + carved_, order);
  carved_ += std::size_t{1} << order;
  return true;
}

std::size_t MemoryPool::index_of(const void* piece) const noexcept {
  return static_cast<std::size_t>(static_cast<const std::byte*>(piece) - region_.get()) / kSmallest;
}

void MemoryPool::push(std::byte* piece, unsigned order) noexcept {
  auto* const free = new (piece) Piece{free_[order], nullptr};
  if (free->next != nullptr) free->next->previous = free;
  free_[order] = free;
  free_order_[index_of(piece)] = static_cast<std::uint8_t>(order);
}

void MemoryPool::unlink(Piece* piece, unsigned order) noexcept {
  (piece->previous != nullptr ? piece->previous->next : free_[order]) = piece->next;
  if (piece->next != nullptr) piece->next->previous = piece->previous;
  free_order_[index_of(piece)] = 0;
}

std::byte* MemoryPool::split_off(unsigned order) noexcept {
  unsigned from = order;
  while (free_[from] == nullptr) {
    if (++from <= kLargestOrder) continue;
    if (!carve()) return nullptr;
    from = order;
  }
  Piece* const piece = free_[from];
  unlink(piece, from);
  auto* const bytes = reinterpret_cast<std::byte*>(piece);
  while (from > order) {
    --from;
    push(bytes + (std::size_t{1} << from), from);
  }
  return bytes;
}

std::byte* MemoryPool::take(unsigned order) noexcept {
  order = std::max(order, kSmallestOrder);
  if (order > kLargestOrder) return nullptr;
  AtHand& at_hand = at_hand_[order];
  std::byte* piece = nullptr;
  if (at_hand.first != nullptr) {
    piece = reinterpret_cast<std::byte*>(at_hand.first);
    at_hand.first = at_hand.first->next;
    --at_hand.count;
  } else {
    piece = split_off(order);
    if (piece == nullptr) {
      // Cached free pieces of other sizes may merge into a piece that is large enough.
      for (unsigned other = kSmallestOrder; other <= kLargestOrder; ++other) {
        while (at_hand_[other].first != nullptr) {
          Piece* const kept = at_hand_[other].first;
          at_hand_[other].first = kept->next;
          --at_hand_[other].count;
          merge_and_push(reinterpret_cast<std::byte*>(kept), other);
        }
      }
      piece = split_off(order);
    }
  }
  if (piece != nullptr) used_ += std::size_t{1} << order;
  return piece;
}

void MemoryPool::merge_and_push(std::byte* piece, unsigned order) noexcept {
  while (order < kLargestOrder) {
    const auto at = static_cast<std::size_t>(piece - region_.get());
    const std::size_t buddy = at ^ (std::size_t{1} << order);
    if (buddy + (std::size_t{1} << order) > bytes_ || free_order_[buddy / kSmallest] != order) break;
    unlink(reinterpret_cast<Piece*>(region_.get() + buddy), order);
    piece = region_.get() + std::min(at, buddy);
    ++order;
  }
  push(piece, order);
}

void MemoryPool::give(std::byte* piece, unsigned order) noexcept {
  order = std::max(order, kSmallestOrder);
  used_ -= std::size_t{1} << order;
  AtHand& at_hand = at_hand_[order];
  if (at_hand.count < kMostAtHand) {
    at_hand.first = new (piece) Piece{at_hand.first, nullptr};
    ++at_hand.count;
    return;
  }
  merge_and_push(piece, order);
}

}  // namespace penstock::stack
