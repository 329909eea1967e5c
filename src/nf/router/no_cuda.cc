// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Replaces router.cu in builds without CUDA: there are no tables on devices, so no stage can be made.

#include "gpu/cuda_error.h"
#include "nf/router/device_tables.h"
#include "nf/router/entry_runs.h"

namespace penstock::router {

void expand_on_device(const RunSpans&, std::uint32_t*) {
  throw gpu::CudaError(0, "this program was built without CUDA");
}

std::unique_ptr<gpu::GpuStage> make_router_gpu_stage(DeviceSide&, CheckRules) {
  throw gpu::CudaError(0, "this program was built without CUDA");
}

}  // namespace penstock::router
