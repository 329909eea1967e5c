// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/transfer/return_schemes.h"
#include "gpu/cuda_error.h"

namespace penstock::experiments {

ReturnTime time_return(int, const ReturnCase&, unsigned) {
  throw gpu::CudaError(0, "this program was built without CUDA");
}

}  // namespace penstock::experiments
