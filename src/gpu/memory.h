// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Owners of device memory and pinned host memory, and the copies between them. Needs no CUDA header. Memory belongs to
// the device that was current when it was allocated. Kernels get a view: a pointer and a size, by value.
//
// Tables are made, filled and freed beside traffic (memory.cu), so none of that waits for other work on the device, and
// none of it keeps copies or launches of other threads waiting for long. Only pinned memory beyond kMostPooled does: it
// is for set-up. Memory may be freed once no enqueued work uses it any more.

#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace penstock::gpu {

class Stream;

struct DeviceMemoryDeleter {
  void operator()(void* memory) const noexcept;
};

struct PinnedMemoryDeleter {
  void operator()(void* memory) const noexcept;
};

/// Pinned memory of up to this size comes from a pool.
inline constexpr std::size_t kMostPooled = std::size_t{256} << 10;

/// The memory is not zeroed; nullptr for 0 bytes. Throw CudaError.
[[nodiscard]] void* take_device_memory(std::size_t bytes);
[[nodiscard]] void* take_pinned_memory(std::size_t bytes);

/// Memory of a device that this process holds in its pool: now, and the most so far. Includes memory that is kept for
/// later. All 0 if nothing was taken yet, or if the device is lost.
struct MemoryUse {
  std::uint64_t bytes = 0;
  std::uint64_t most_bytes = 0;
};
[[nodiscard]] MemoryUse memory_use(int device) noexcept;

/// Enqueues a copy; the addresses determine the direction. Does not block if the host memory is pinned. False if the
/// driver refuses, which means that the context is lost.
[[nodiscard]] bool copy_async(void* to, const void* from, std::size_t bytes, const Stream& stream) noexcept;
/// Likewise, `rows` pieces of `width` bytes each, which follow each other at `to`, and begin every `stride` bytes at
/// `from`. With one row, `stride` does not matter.
[[nodiscard]] bool copy_rows_async(void* to, const void* from, std::size_t rows, std::size_t width, std::size_t stride,
                                   const Stream& stream) noexcept;
[[nodiscard]] bool zero_async(void* to, std::size_t bytes, const Stream& stream) noexcept;

/// Copy, and block until the copy is complete. Not for the packet path; throw CudaError. To the current device: in
/// pieces, so that copies of traffic never wait for long. To the host: also waits for kernels of the default stream.
void copy_to_device(void* to, const void* from, std::size_t bytes);
void copy_to_host(void* to, const void* from, std::size_t bytes);

/// For device memory with secrets that is about to be freed: zeroes it before others can have it. Does not block.
void wipe(void* memory, std::size_t bytes) noexcept;

/// `size()` elements in device memory, which the host must not access.
template <typename T>
class DeviceBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t size)
      : memory_(static_cast<T*>(take_device_memory(size * sizeof(T)))), size_(size) {}
  /// A copy of a host table on the device.
  explicit DeviceBuffer(std::span<const T> host) : DeviceBuffer(host.size()) {
    copy_to_device(memory_.get(), host.data(), host.size_bytes());
  }

  [[nodiscard]] T* data() noexcept { return memory_.get(); }
  [[nodiscard]] const T* data() const noexcept { return memory_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }

  /// A copy of the contents, for tests and tools. Blocks until the device is done, but does not wait for other streams.
  [[nodiscard]] std::vector<T> to_host() const {
    std::vector<T> host(size_);
    copy_to_host(host.data(), memory_.get(), size_bytes());
    return host;
  }

 private:
  std::unique_ptr<T, DeviceMemoryDeleter> memory_;
  std::size_t size_ = 0;
};

/// `size()` elements in page-locked host memory. Copies from and to it are asynchronous, and kernels can use its
/// addresses directly (zero copy).
template <typename T>
class PinnedBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  PinnedBuffer() = default;
  explicit PinnedBuffer(std::size_t size)
      : memory_(static_cast<T*>(take_pinned_memory(size * sizeof(T)))), size_(size) {}

  [[nodiscard]] T* data() noexcept { return memory_.get(); }
  [[nodiscard]] const T* data() const noexcept { return memory_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
  [[nodiscard]] std::span<T> span() noexcept { return {memory_.get(), size_}; }
  [[nodiscard]] std::span<const T> span() const noexcept { return {memory_.get(), size_}; }
  [[nodiscard]] T& operator[](std::size_t index) noexcept {
    assert(index < size_);
    return memory_.get()[index];
  }
  [[nodiscard]] const T& operator[](std::size_t index) const noexcept {
    assert(index < size_);
    return memory_.get()[index];
  }

 private:
  std::unique_ptr<T, PinnedMemoryDeleter> memory_;
  std::size_t size_ = 0;
};

}  // namespace penstock::gpu
