// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPU stage of a firewall that translates addresses: one thread per packet.

#include <variant>

#include "gpu/per_packet.cuh"
#include "nf/firewall/device_stage.h"
#include "nf/firewall/translating_core.h"

namespace penstock::firewall {

std::unique_ptr<gpu::GpuStage> make_translating_gpu_stage(const classify::DeviceTables& tables) {
  return std::visit(
      [&]<typename Engine>(const Engine& engine) -> std::unique_ptr<gpu::GpuStage> {
        using Core = TranslatingCore<Engine>;
        return std::make_unique<gpu::PerPacketStage<Core>>(Core{{{engine, tables.rules()}}});
      },
      tables.engine());
}

}  // namespace penstock::firewall
