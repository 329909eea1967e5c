// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Allocates pieces of 2^n bytes from one region of fixed size: a buddy system (Knuth, TAOCP 1, §2.5) with a small cache
// of free pieces per size. Pages that were never used cost no memory. Owned by one worker.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/huge_page_allocator.h"

namespace penstock::stack {

class MemoryPool {
 public:
  static constexpr unsigned kSmallestOrder = 8, kLargestOrder = 24;  // 256 bytes to 16 MiB

  /// Region size in bytes, rounded down to a multiple of the smallest piece.
  explicit MemoryPool(std::size_t bytes);

  /// 2^order bytes, aligned to 64; null if the pool is full.
  [[nodiscard]] std::byte* take(unsigned order) noexcept;
  /// Returns a piece to the pool. `order`: as in `take`.
  void give(std::byte* piece, unsigned order) noexcept;

  [[nodiscard]] std::size_t used_bytes() const noexcept { return used_; }

 private:
  struct Piece {
    Piece* next;
    Piece* previous;
  };
  struct AtHand {
    Piece* first = nullptr;
    unsigned count = 0;
  };
  static constexpr unsigned kMostAtHand = 32;

  [[nodiscard]] std::size_t index_of(const void* piece) const noexcept;
  void push(std::byte* piece, unsigned order) noexcept;
  void unlink(Piece* piece, unsigned order) noexcept;
  void merge_and_push(std::byte* piece, unsigned order) noexcept;
  bool carve() noexcept;
  [[nodiscard]] std::byte* split_off(unsigned order) noexcept;

  std::size_t bytes_;
  HugeMemory<std::byte> region_;
  std::unique_ptr<std::uint8_t[]>
      free_order_;  // by smallest piece: the order of the free piece that begins there, or 0
  std::array<Piece*, kLargestOrder + 1> free_{};
  std::array<AtHand, kLargestOrder + 1> at_hand_{};
  std::size_t carved_ = 0;  // bytes of the region already split into pieces
  std::size_t used_ = 0;
};

}  // namespace penstock::stack
