// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/epoch.h"

#include <fmt/format.h>

#include <utility>

#include "function/granted_stage.h"
#include "gpu/cuda_error.h"

namespace penstock::run {

std::unique_ptr<StageSet> make_host_stages(std::span<const NamedFunction> functions, const plan::DevicePlan* plan) {
  auto set = std::make_unique<StageSet>();
  for (const NamedFunction& named : functions) set->twins.push_back(named.function->make_cpu_stage());
  if (plan == nullptr) return set;
  set->finish.resize(functions.size());
  set->states.resize(functions.size());
  set->handing.resize(functions.size());
  set->granted_states.resize(functions.size());
  for (const ring::SegmentShape& segment : plan->segments) {
    for (const ring::SegmentShape::Stage& stage : segment.stages) {
      function::NetworkFunction& function = *functions[stage.function].function;
      function::CpuStage& twin = *set->twins[stage.function];
      set->finish[stage.function] = function.make_finish_stage(twin);
      set->handing[stage.function] = dynamic_cast<function::HandingStage*>(set->finish[stage.function].get());
      if (stage.state_bytes == 0) continue;
      set->states[stage.function] = function.make_state_stage(twin);
      set->granted_states[stage.function] = dynamic_cast<function::StatesOfGrant*>(set->states[stage.function].get());
    }
  }
  return set;
}

ring::LaneStages make_lane_stages(std::span<const NamedFunction> functions, const plan::DevicePlan& plan,
                                  const LaneFactory& factory, const plan::GpuShares& shares, unsigned worker,
                                  std::size_t batch_packets) {
  ring::LaneStages stages;
  for (const ring::SegmentShape& segment : plan.segments) {
    stages.emplace_back();
    for (const ring::SegmentShape::Stage& stage : segment.stages) {
      const NamedFunction& named = functions[stage.function];
      auto made = factory.make_stage(*named.function,
                                     {worker, static_cast<std::uint32_t>(batch_packets), shares.of(stage.function)});
      if (made == nullptr)
        throw gpu::CudaError(0, fmt::format("{} has no stage for {} in this program", named.name, name(plan.device)));
      stages.back().push_back(std::move(made));
    }
  }
  return stages;
}

}  // namespace penstock::run
