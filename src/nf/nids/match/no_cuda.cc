// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Replaces scan_stage.cu in builds without CUDA: there are no tables on devices, so no stage can be made.

#include "gpu/cuda_error.h"
#include "nf/nids/match/device_literals.h"

namespace penstock::nids {

std::unique_ptr<gpu::GpuStage> make_scan_stage(const DeviceLiterals&, std::uint32_t, bool) {
  throw gpu::CudaError(0, "this program was built without CUDA");
}

}  // namespace penstock::nids
