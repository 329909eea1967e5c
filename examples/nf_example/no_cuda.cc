// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The twin of dscp.cu in a build without CUDA: no device is there that would ask for a stage.

#include "dscp.h"

namespace dscp {

std::unique_ptr<penstock::gpu::GpuStage> make_dscp_gpu_stage(const DscpCore&) { return nullptr; }

}  // namespace dscp
