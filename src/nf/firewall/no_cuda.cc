// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Replaces firewall.cu and translating.cu in builds without CUDA: there are no tables on devices, so no stage can be
// made.

#include "gpu/cuda_error.h"
#include "nf/firewall/device_stage.h"

namespace penstock::firewall {

std::unique_ptr<gpu::GpuStage> make_firewall_gpu_stage(const classify::DeviceTables&, bool) {
  throw gpu::CudaError(0, "this program was built without CUDA");
}
std::unique_ptr<gpu::GpuStage> make_translating_gpu_stage(const classify::DeviceTables&) {
  throw gpu::CudaError(0, "this program was built without CUDA");
}

}  // namespace penstock::firewall
