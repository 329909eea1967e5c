// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A failure of the CUDA runtime during set-up. Thrown only by `check` (check.cuh), and caught in one place, in cli/.
// Nothing on the packet path throws; `Progress` reports a device failure there.

#pragma once

#include <stdexcept>
#include <string>

namespace penstock::gpu {

class CudaError : public std::runtime_error {
 public:
  /// `code` is the runtime's `cudaError_t`; `message` contains the source location and CUDA's description.
  CudaError(int code, const std::string& message) : std::runtime_error(message), code_(code) {}

  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

}  // namespace penstock::gpu
