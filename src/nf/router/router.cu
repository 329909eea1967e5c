// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPU stage: one thread per packet, with the tables that were newest when the batch began.

#include <variant>

#include "gpu/per_packet.cuh"
#include "nf/router/device_tables.h"
#include "nf/router/forward_core.h"

namespace penstock::router {

namespace {

class RouterGpuStage final : public gpu::GpuStage {
 public:
  RouterGpuStage(DeviceSide& side, CheckRules rules) : side_(side), tables_(side.snapshot()), rules_(rules) {}

  void begin_batch() noexcept override { tables_.refresh(); }

  bool enqueue(const gpu::DevicePackets& batch, const gpu::Stream& stream) noexcept override {
    if (side_.lost()) return false;
    const DeviceTables& tables = tables_.table();
    return std::visit(
        [&]<typename View>(const View& v4) {
          return gpu::enqueue_per_packet(ForwardCore<View, Fib6View>{v4, tables.v6(), tables.view(), rules_}, batch,
                                         stream);
        },
        tables.v4());
  }

 private:
  DeviceSide& side_;
  function::Snapshot<DeviceTables>::Reader tables_;
  CheckRules rules_;
};

}  // namespace

std::unique_ptr<gpu::GpuStage> make_router_gpu_stage(DeviceSide& side, CheckRules rules) {
  return std::make_unique<RouterGpuStage>(side, rules);
}

}  // namespace penstock::router
