// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Pieces of memory of 2^n bytes out of one region whose size never changes: a buddy system (Knuth, TAOCP 1, §2.5), with
// a few free pieces of each size kept at hand. Pages that no piece touched cost nothing. One worker's own.

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

  /// The region has `bytes`, cut down to whole smallest pieces.
  explicit MemoryPool(std::size_t bytes);

  /// 2^order bytes, aligned to 64; null where there is no room.
  [[nodiscard]] std::byte* take(unsigned order) noexcept;
  /// What `take` gave, with the same order.
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
  std::size_t carved_ = 0;  // bytes of the region that pieces were made of
  std::size_t used_ = 0;
};

}  // namespace penstock::stack
