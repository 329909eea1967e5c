// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A failure of the CUDA runtime while a chain is being set up. Thrown by `check` (check.cuh) alone, and caught once, in
// cli/. Nothing on the packet path throws: there, `Progress` says that the device failed.

#pragma once

#include <stdexcept>
#include <string>

namespace penstock::gpu {

class CudaError : public std::runtime_error {
 public:
  /// `code` is the runtime's `cudaError_t`; `message` says the place in our source and what CUDA says of it.
  CudaError(int code, const std::string& message) : std::runtime_error(message), code_(code) {}

  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

}  // namespace penstock::gpu
