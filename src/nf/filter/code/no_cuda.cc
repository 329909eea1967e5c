// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Replaces interpreting_matcher.cu in a build without CUDA.

#include "gpu/cuda_error.h"
#include "nf/filter/code/device_matcher.h"

namespace penstock::filter {

std::unique_ptr<DeviceMatcher> make_interpreting_matcher(std::span<const Program>) {
  throw gpu::CudaError(0, "this program was built without CUDA");
}

}  // namespace penstock::filter
