// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// An array that hands out blocks of 1 to 64 contiguous places. A block's room is its count rounded up to a power of
// two; a released block waits for the next of its room. Owned by a table, copied with it; indices survive growth.

#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "nf/router/huge_page_allocator.h"

namespace penstock::router {

template <typename T>
class BlockPool {
 public:
  [[nodiscard]] static constexpr std::uint32_t room(std::uint32_t count) noexcept { return std::bit_ceil(count); }

  /// After this, blocks of `places` in all can be taken without allocating.
  void reserve(std::size_t places) {
    if (places_.capacity() - places_.size() < places) places_.reserve(places_.size() + places_.size() / 2 + places);
  }

  /// Where a block for `count` places (at least 1) begins. Its contents are what was there before.
  [[nodiscard]] std::uint32_t take(std::uint32_t count) {
    std::vector<std::uint32_t>& free = free_[size_class(count)];
    if (free.empty()) {
      const auto first = static_cast<std::uint32_t>(places_.size());
      places_.resize(places_.size() + room(count));
      return first;
    }
    const std::uint32_t first = free.back();
    free.pop_back();
    return first;
  }

  void release(std::uint32_t first, std::uint32_t count) { free_[size_class(count)].push_back(first); }

  [[nodiscard]] T& operator[](std::uint32_t index) noexcept { return places_[index]; }
  [[nodiscard]] const T& operator[](std::uint32_t index) const noexcept { return places_[index]; }
  [[nodiscard]] const T* data() const noexcept { return places_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return places_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return places_.size() * sizeof(T); }

 private:
  static constexpr std::size_t kClasses = 7;  // 1, 2, 4 … 64 places

  [[nodiscard]] static constexpr std::size_t size_class(std::uint32_t count) noexcept {
    return static_cast<std::size_t>(std::countr_zero(room(count)));
  }

  HugeVector<T> places_;
  std::array<std::vector<std::uint32_t>, kClasses> free_;
};

}  // namespace penstock::router
