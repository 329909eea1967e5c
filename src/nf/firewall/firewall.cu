// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPU stage: one thread per packet. The counters' indices are sent back to the host, where the finish stage counts.

#include <variant>

#include "gpu/per_packet.cuh"
#include "nf/firewall/device_stage.h"
#include "nf/firewall/judge_core.h"

namespace penstock::firewall {

std::unique_ptr<gpu::GpuStage> make_firewall_gpu_stage(const classify::DeviceTables& tables, bool tracks) {
  return std::visit(
      [&]<typename Engine>(const Engine& engine) -> std::unique_ptr<gpu::GpuStage> {
        using Core = JudgeCore<Engine>;
        using TrackedCore = TrackedJudgeCore<Engine>;
        const Core core{engine, tables.rules()};
        if (tracks) return std::make_unique<gpu::PerPacketStage<TrackedCore>>(TrackedCore{core});
        return std::make_unique<gpu::PerPacketStage<Core>>(core);
      },
      tables.engine());
}

}  // namespace penstock::firewall
