// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory for tables with random access. Large blocks are placed on 2 MiB pages if the kernel provides them, so that a
// look-up that misses the cache does not miss the TLB too.

#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace penstock {

template <typename T>
struct HugePageAllocator {
  using value_type = T;

  HugePageAllocator() = default;
  template <typename U>
  HugePageAllocator(const HugePageAllocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor): as allocators do

  [[nodiscard]] T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_array_new_length();
    const std::size_t alignment = alignment_of(count);
    const std::size_t bytes = (count * sizeof(T) + alignment - 1) / alignment * alignment;
    void* const memory = ::operator new (bytes, std::align_val_t{alignment});
    if (alignment == kPageBytes) (void)::madvise(memory, bytes, MADV_HUGEPAGE);  // only a hint: small pages work too
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    ::operator delete (memory, std::align_val_t{alignment_of(count)});
  }

  friend bool operator==(const HugePageAllocator&, const HugePageAllocator&) { return true; }

 private:
  static constexpr std::size_t kLineBytes = 64;
  static constexpr std::size_t kPageBytes = std::size_t{2} << 20;

  static constexpr std::size_t alignment_of(std::size_t count) noexcept {
    return count * sizeof(T) < kPageBytes ? kLineBytes : kPageBytes;
  }
};

template <typename T>
using HugeVector = std::vector<T, HugePageAllocator<T>>;

/// Uninitialised memory: no objects are constructed or destroyed in it. Pages are only allocated when they are written.
template <typename T>
struct HugeMemoryDeleter {
  std::size_t count = 0;
  void operator()(T* memory) const noexcept { HugePageAllocator<T>().deallocate(memory, count); }
};
template <typename T>
using HugeMemory = std::unique_ptr<T[], HugeMemoryDeleter<T>>;
template <typename T>
[[nodiscard]] HugeMemory<T> make_huge_memory(std::size_t count) {
  return {HugePageAllocator<T>().allocate(count), HugeMemoryDeleter<T>{count}};
}

}  // namespace penstock
