// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPU stage, with one thread per packet.

#include "dscp.h"
#include "gpu/per_packet.cuh"

namespace dscp {

std::unique_ptr<penstock::gpu::GpuStage> make_dscp_gpu_stage(const DscpCore& core) {
  return std::make_unique<penstock::gpu::PerPacketStage<DscpCore>>(core);
}

}  // namespace dscp
