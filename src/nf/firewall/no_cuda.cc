// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The twin of firewall.cu in a build without CUDA: no tables can lie on a device, so there is no stage to make.

#include "gpu/cuda_error.h"
#include "nf/firewall/firewall_stage.h"

namespace penstock::firewall {

std::unique_ptr<gpu::GpuStage> make_firewall_gpu_stage(const classify::DeviceTables&) {
  throw gpu::CudaError(0, "this program was built without CUDA");
}

}  // namespace penstock::firewall
