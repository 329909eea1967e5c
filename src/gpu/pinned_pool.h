// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Cuts blocks from slabs of pinned memory, and keeps them when they are given back. Pinning and unpinning memory stops
// the device, the longer the larger it is, so it should not be done while packets flow: never for small blocks, and for
// larger ones not as long as a reserve that was pinned before lasts. Slabs are never given back.

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
  static constexpr std::size_t kMostReserved = std::size_t{16} << 20;

  /// `make_slab(bytes)` returns pinned memory, aligned to kAlignment, or throws.
  explicit PinnedPool(std::function<void*(std::size_t)> make_slab) : make_slab_(std::move(make_slab)) {}

  /// Pins memory for take_reserved. What an earlier reserve has left is not used any more.
  void reserve(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    reserve_ = {static_cast<std::byte*>(make_slab_(bytes)), bytes};
  }
  /// At most kSlabBytes.
  [[nodiscard]] void* take(std::size_t bytes) {
    const std::size_t size = size_of_block(bytes);
    const std::lock_guard lock(mutex_);
    return hand_out(size, [&] {
      if (size > slab_.left) slab_ = {static_cast<std::byte*>(make_slab_(kSlabBytes)), kSlabBytes};
      return slab_.cut(size);
    });
  }
  /// Pins nothing. Null: the reserve has no such block left, or it is larger than kMostReserved.
  [[nodiscard]] void* take_reserved(std::size_t bytes) {
    if (bytes > kMostReserved) return nullptr;
    const std::size_t size = size_of_block(bytes);
    const std::lock_guard lock(mutex_);
    return hand_out(size, [&] { return size <= reserve_.left ? reserve_.cut(size) : nullptr; });
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
  struct Slab {
    [[nodiscard]] void* cut(std::size_t size) noexcept {
      left -= size;
      return std::exchange(next, next + size);
    }
    std::byte* next = nullptr;
    std::size_t left = 0;
  };
  [[nodiscard]] static std::size_t size_of_block(std::size_t bytes) noexcept {
    return std::bit_ceil(bytes < kAlignment ? kAlignment : bytes);
  }
  [[nodiscard]] static std::size_t class_of(std::size_t size) noexcept {
    return static_cast<std::size_t>(std::countr_zero(size));
  }
  /// A block that was given back, or else a new one. Null: so is what `cut` returns.
  template <typename Cut>
  [[nodiscard]] void* hand_out(std::size_t size, const Cut& cut) {
    Blocks& blocks = blocks_[class_of(size)];
    if (blocks.free.empty()) {
      blocks.free.reserve(blocks.made + 1);  // so that `give` does not allocate
      void* const made = cut();
      if (made == nullptr) return nullptr;
      blocks.free.push_back(made);
      ++blocks.made;
    }
    void* const block = blocks.free.back();
    sizes_.emplace(block, size);
    blocks.free.pop_back();
    return block;
  }

  std::function<void*(std::size_t)> make_slab_;
  std::mutex mutex_;  // guards the members below
  Slab slab_;         // the newest
  Slab reserve_;
  std::array<Blocks, std::bit_width(kMostReserved)> blocks_;  // by binary logarithm of the size
  std::unordered_map<void*, std::size_t> sizes_;              // of blocks that are taken
};

/// Pins memory for larger buffers of this process, up to PinnedPool::kMostReserved each, which are then made without
/// holding up the device. Throws CudaError.
void reserve_pinned_memory(std::size_t bytes);

}  // namespace penstock::gpu
