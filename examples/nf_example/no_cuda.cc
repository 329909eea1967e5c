// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Replaces dscp.cu in builds without CUDA, which have no devices and never request a GPU stage.

#include "dscp.h"

namespace dscp {

std::unique_ptr<penstock::gpu::GpuStage> make_dscp_gpu_stage(const DscpCore&) { return nullptr; }

}  // namespace dscp
