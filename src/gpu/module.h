// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Machine code that was made at run time (nvrtc.h), and its kernels. Needs no CUDA header, and no library but the CUDA
// runtime.

#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "gpu/stream.h"

struct CUlib_st;  // the types that cudaLibrary_t and cudaKernel_t point to
struct CUkern_st;

namespace penstock::gpu {

/// A kernel of a module. Borrows the module.
class ModuleKernel {
 public:
  ModuleKernel() = default;
  explicit ModuleKernel(CUkern_st* kernel) noexcept : kernel_(kernel) {}

  /// For launches in other ways: the runtime takes it in place of a function.
  [[nodiscard]] CUkern_st* get() const noexcept { return kernel_; }

  /// The most threads of a block with which the current device can launch it. Throws CudaError.
  [[nodiscard]] unsigned most_threads() const;
  /// The sizes of its parameters in bytes, in their order. Throws CudaError.
  [[nodiscard]] std::vector<std::size_t> parameter_bytes() const;

  /// Enqueues a launch of at least `threads` threads, in blocks of `block`, `rows` times (the grid's second dimension).
  /// `parameter` is the kernel's only parameter, by value. False if the driver refuses. Nothing is launched for 0
  /// threads.
  template <typename Parameter>
  [[nodiscard]] bool launch(std::size_t threads, unsigned block, const Stream& stream, const Parameter& parameter,
                            unsigned rows = 1) const noexcept {
    return launch(threads, block, rows, stream, static_cast<const void*>(&parameter));
  }

 private:
  [[nodiscard]] bool launch(std::size_t threads, unsigned block, unsigned rows, const Stream& stream,
                            const void* parameter) const noexcept;

  CUkern_st* kernel_ = nullptr;
};

struct ModuleDeleter {
  void operator()(CUlib_st* library) const noexcept;
};

/// For the devices whose machine code it has. Must outlive all work that uses it.
class Module {
 public:
  /// Throws CudaError, for example if the code is not for the current device. `code` is copied.
  explicit Module(std::span<const char> code);

  /// Throws CudaError if there is no such kernel.
  [[nodiscard]] ModuleKernel kernel(const char* name) const;

  /// A variable in the memory of the current device (`__device__` or `__constant__`).
  struct Variable {
    void* address = nullptr;
    std::size_t bytes = 0;
  };
  /// Throws CudaError if there is no such variable.
  [[nodiscard]] Variable variable(const char* name) const;

 private:
  std::unique_ptr<CUlib_st, ModuleDeleter> library_;
};

}  // namespace penstock::gpu
