// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Owners of device memory and of pinned host memory, and the copies between them. No CUDA header is needed here.
// The memory belongs to the device that was current when it was taken; taking and giving back may wait for the
// device, so both happen at set-up alone. What kernels get is a view: pointer and size, by value.

#pragma once

#include <cassert>
#include <cstddef>
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

/// Not zeroed; nullptr for 0 bytes. Throw CudaError.
[[nodiscard]] void* take_device_memory(std::size_t bytes);
[[nodiscard]] void* take_pinned_memory(std::size_t bytes);

/// Enqueues a copy, in whichever direction the addresses say. It waits for nothing if the host's side is pinned. False
/// when the driver refuses it: the context is lost.
[[nodiscard]] bool copy_async(void* to, const void* from, std::size_t bytes, const Stream& stream) noexcept;
[[nodiscard]] bool zero_async(void* to, std::size_t bytes, const Stream& stream) noexcept;

/// Copies and waits until all has arrived. Never on the packet path; throws CudaError.
void copy(void* to, const void* from, std::size_t bytes);

/// `size()` elements in device memory; the host must not touch them.
template <typename T>
class DeviceBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t size)
      : memory_(static_cast<T*>(take_device_memory(size * sizeof(T)))), size_(size) {}
  /// A table's twin on the device.
  explicit DeviceBuffer(std::span<const T> host) : DeviceBuffer(host.size()) {
    copy(memory_.get(), host.data(), host.size_bytes());
  }

  [[nodiscard]] T* data() noexcept { return memory_.get(); }
  [[nodiscard]] const T* data() const noexcept { return memory_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }

  /// The contents; waits for the device, but not for other streams. Tests and tools.
  [[nodiscard]] std::vector<T> to_host() const {
    std::vector<T> host(size_);
    copy(host.data(), memory_.get(), size_bytes());
    return host;
  }

 private:
  std::unique_ptr<T, DeviceMemoryDeleter> memory_;
  std::size_t size_ = 0;
};

/// `size()` elements in page-locked host memory. Copies from and to it run beside the host, and kernels may use its
/// addresses as they are (zero copy).
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
