// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory that is taken, filled and freed beside traffic. A reload does all three while workers launch and poll, so:
//
// - Device memory comes from a pool of the device. cudaMalloc and cudaFree change the device's address space, and
//   cudaFree waits until the device is idle; the pool keeps what is freed, and hands it out again.
// - Copies to the device go through pinned memory in pieces, and only one piece is in flight. A table of 100 MB would
//   keep a copy engine from batches for milliseconds.
// - Small pinned memory comes from a pool, too, and so do larger parts of what a process has reserved.
//
// All of it is ordered by one stream per device, which no packet uses.

#include "gpu/memory.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "gpu/check.cuh"
#include "gpu/cuda_error.h"
#include "gpu/devices.h"
#include "gpu/green_context.h"
#include "gpu/per_device.h"
#include "gpu/pinned_pool.h"
#include "gpu/stream.h"

namespace penstock::gpu {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{256} << 10;  // 7 us on PCIe 5 x16

void* pin(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
  return memory;
}

PinnedPool& pinned_pool() {
  static auto* const pool = new PinnedPool(pin);  // never destroyed: owners may be freed later
  return *pool;
}

/// Selects a device for this thread for as long as it exists. What the driver says is ignored: it may be unloading.
class OnDevice {
 public:
  explicit OnDevice(int device) noexcept {
    static_cast<void>(cudaGetDevice(&former_));
    static_cast<void>(cudaSetDevice(device));
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { static_cast<void>(cudaSetDevice(former_)); }

 private:
  int former_ = 0;
};

/// The control side of one device. Thread-safe.
class Control {
 public:
  /// For the current device.
  Control() : device_(current_device()) {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device_;
    check(cudaMemPoolCreate(&pool_, &properties));
    // What a reload frees, the next one needs. Never the whole device: other processes share it.
    std::size_t free = 0;
    std::size_t total = 0;
    check(cudaMemGetInfo(&free, &total));
    std::uint64_t kept = total / 4;
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &kept));
  }

  [[nodiscard]] cudaMemPool_t pool() const noexcept { return pool_; }

  [[nodiscard]] MemoryUse use() const noexcept {
    MemoryUse use;
    const bool good = cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &use.bytes) == cudaSuccess &&
                      cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemHigh, &use.most_bytes) == cudaSuccess;
    return good ? use : MemoryUse{};
  }

  [[nodiscard]] void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    void* memory = nullptr;
    cudaError_t status = cudaMallocFromPoolAsync(&memory, bytes, pool_, stream_.get());
    if (status == cudaErrorMemoryAllocation) {
      // Pieces of memory that are kept may be too small.
      static_cast<void>(cudaGetLastError());
      stream_.wait();
      check(cudaMemPoolTrimTo(pool_, 0));
      status = cudaMallocFromPoolAsync(&memory, bytes, pool_, stream_.get());
    }
    check(status);
    stream_.wait();  // other streams may use it now
    return memory;
  }

  /// The memory is taken by others only after what is in the stream.
  void give(void* memory) noexcept {
    const OnDevice on_device(device_);
    static_cast<void>(cudaFreeAsync(memory, stream_.get()));
  }

  void wipe(void* memory, std::size_t bytes) noexcept {
    const OnDevice on_device(device_);
    static_cast<void>(zero_async(memory, bytes, stream_));
  }

  /// Lets other threads pass between pieces: they may only want a little.
  void copy(void* to, const void* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += kPieceBytes) {
      const std::lock_guard lock(mutex_);
      if (pieces_.size() == 0) pieces_ = PinnedBuffer<std::byte>(2 * kPieceBytes);
      std::byte* const piece = pieces_.data() + (second_ ? kPieceBytes : 0);
      const std::size_t size = std::min(kPieceBytes, bytes - at);
      std::memcpy(piece, static_cast<const std::byte*>(from) + at, size);
      stream_.wait();  // for the piece before, whoever has copied it
      check(cudaMemcpyAsync(static_cast<std::byte*>(to) + at, piece, size, cudaMemcpyHostToDevice, stream_.get()));
      second_ = !second_;
    }
    const std::lock_guard lock(mutex_);
    stream_.wait();
    std::memset(pieces_.data(), 0, std::min(bytes, pieces_.size()));  // it may have been a table of keys
  }

 private:
  const int device_;
  std::mutex mutex_;
  cudaMemPool_t pool_ = nullptr;
  Stream stream_;
  PinnedBuffer<std::byte> pieces_;
  bool second_ = false;  // whether the second piece is the next one
};

PerDevice<Control>& controls() {
  static auto* const controls = new PerDevice<Control>;  // never destroyed: owners may be freed later
  return *controls;
}

Control& control_of(int device) {
  return controls().of(device, [] {
    const GreenContextScope none(nullptr);  // whose streams would end before the process
    return std::make_unique<Control>();
  });
}

/// Of the device that has the memory; null if the driver cannot tell, because the context is lost or it is unloading.
Control* control_of_memory(void* memory) noexcept {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess || attributes.type != cudaMemoryTypeDevice)
    return nullptr;
  return &control_of(attributes.device);
}

}  // namespace

// At program exit, the driver may be unloaded before the last owner is destroyed. Then there is nothing left to free,
// and these calls fail, so their statuses are ignored on purpose.
void DeviceMemoryDeleter::operator()(void* memory) const noexcept {
  if (Control* const control = control_of_memory(memory)) control->give(memory);
}

void PinnedMemoryDeleter::operator()(void* memory) const noexcept {
  if (!pinned_pool().give(memory)) static_cast<void>(cudaFreeHost(memory));
}

void* take_device_memory(std::size_t bytes) { return bytes > 0 ? control_of(current_device()).take(bytes) : nullptr; }

void* take_pinned_memory(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  if (bytes <= kMostPooled) return pinned_pool().take(bytes);
  void* const reserved = pinned_pool().take_reserved(bytes);
  return reserved != nullptr ? reserved : pin(bytes);
}

void reserve_pinned_memory(std::size_t bytes) { pinned_pool().reserve(bytes); }

MemoryUse memory_use(int device) noexcept {
  const Control* const control = controls().find(device);
  return control != nullptr ? control->use() : MemoryUse{};
}

bool copy_async(void* to, const void* from, std::size_t bytes, const Stream& stream) noexcept {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream.get()) == cudaSuccess;
}

bool copy_rows_async(void* to, const void* from, std::size_t rows, std::size_t width, std::size_t stride,
                     const Stream& stream) noexcept {
  if (rows == 1) return copy_async(to, from, width, stream);
  return cudaMemcpy2DAsync(to, width, from, stride, width, rows, cudaMemcpyDefault, stream.get()) == cudaSuccess;
}

bool zero_async(void* to, std::size_t bytes, const Stream& stream) noexcept {
  return cudaMemsetAsync(to, 0, bytes, stream.get()) == cudaSuccess;
}

void copy_to_device(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) control_of(current_device()).copy(to, from, bytes);
}

void copy_to_host(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
  check(cudaStreamSynchronize(cudaStreamLegacy));
}

void wipe(void* memory, std::size_t bytes) noexcept {
  if (Control* const control = control_of_memory(memory)) control->wipe(memory, bytes);
}

void reach_memory_of(int device) {
  const int here = current_device();
  if (here == device) return;
  int reachable = 0;
  int counts = 0;
  check(cudaDeviceCanAccessPeer(&reachable, here, device));
  check(cudaDeviceGetP2PAttribute(&counts, cudaDevP2PAttrNativeAtomicSupported, here, device));
  if (reachable == 0 || counts == 0) {
    throw CudaError(0, "GPU " + std::to_string(here) + " cannot update counters in the memory of GPU " +
                           std::to_string(device) + ": there is no NVLink between them");
  }
  use_device(device);
  const cudaMemPool_t pool = control_of(device).pool();
  use_device(here);
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = here;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  check(cudaMemPoolSetAccess(pool, &access, 1));
}

}  // namespace penstock::gpu
