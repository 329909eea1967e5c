// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A part of a device's multiprocessors, by a green context of the driver: kernels in its streams use only these. Its
// functions come from the driver at run time, so nothing is linked with it.

#pragma once

#include <memory>

#include "base/error.h"

struct CUstream_st;

namespace penstock::experiments {

/// Streams of a device's share. Owns the green context; its streams must be destroyed (cudaStreamDestroy) before it.
class MultiprocessorShare {
 public:
  /// `percent` of the current device's multiprocessors, rounded as the driver needs it. Fails if the driver refuses,
  /// with the function's name and CUDA's reason.
  [[nodiscard]] static Result<MultiprocessorShare> take(unsigned percent);

  MultiprocessorShare(MultiprocessorShare&&) noexcept;
  MultiprocessorShare& operator=(MultiprocessorShare&&) noexcept;
  ~MultiprocessorShare();

  [[nodiscard]] unsigned multiprocessors() const noexcept { return multiprocessors_; }
  [[nodiscard]] Result<CUstream_st*> make_stream() const;

 private:
  struct Driver;
  MultiprocessorShare() noexcept;
  std::unique_ptr<Driver> driver_;
  void* context_ = nullptr;  // CUgreenCtx
  unsigned multiprocessors_ = 0;
};

}  // namespace penstock::experiments
