// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Cuts small blocks from slabs of pinned memory, and keeps them when they are given back. Pinning and unpinning memory
// stops the device, so it should not be done for each small block while packets flow. Slabs are never given back.

#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace penstock::gpu {

/// Thread-safe. Blocks begin at multiples of kAlignment, so blocks of different workers share no cache line.
class PinnedPool {
 public:
  static constexpr std::size_t kAlignment = 256;
  static constexpr std::size_t kSlabBytes = std::size_t{2} << 20;

  /// `make_slab(bytes)` returns pinned memory, aligned to kAlignment, or throws.
  explicit PinnedPool(std::function<void*(std::size_t)> make_slab) : make_slab_(std::move(make_slab)) {}

  /// At most kSlabBytes.
  [[nodiscard]] void* take(std::size_t bytes) {
    const std::size_t size = std::bit_ceil(bytes < kAlignment ? kAlignment : bytes);
    const std::lock_guard lock(mutex_);
    Blocks& blocks = blocks_[class_of(size)];
    if (blocks.free.empty()) {
      blocks.free.reserve(blocks.made + 1);  // so that `give` does not allocate
      blocks.free.push_back(cut(size));
      ++blocks.made;
    }
    void* const block = blocks.free.back();
    sizes_.emplace(block, size);
    blocks.free.pop_back();
    return block;
  }
  /// False if the memory is not of this pool.
  [[nodiscard]] bool give(void* block) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(block);
    if (found == sizes_.end()) return false;
    blocks_[class_of(found->second)].free.push_back(block);
    sizes_.erase(found);
    return true;
  }

 private:
  /// Of one size.
  struct Blocks {
    std::vector<void*> free;
    std::size_t made = 0;
  };
  [[nodiscard]] static std::size_t class_of(std::size_t size) noexcept {
    return static_cast<std::size_t>(std::countr_zero(size));
  }
  [[nodiscard]] void* cut(std::size_t size) {
    if (size > left_) {
      next_ = static_cast<std::byte*>(make_slab_(kSlabBytes));
      left_ = kSlabBytes;
    }
    left_ -= size;
    return std::exchange(next_, next_ + size);
  }

  std::function<void*(std::size_t)> make_slab_;
  std::mutex mutex_;  // guards the members below
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
  std::array<Blocks, std::bit_width(kSlabBytes)> blocks_;  // by binary logarithm of the size
  std::unordered_map<void*, std::size_t> sizes_;           // of blocks that are taken
};

}  // namespace penstock::gpu
