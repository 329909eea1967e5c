// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// An epoch: one version of all tables of the chain, held by its functions. A reload makes the functions of the next
// epoch and, for each worker, their stages (a StageSet). The worker begins with them at a batch boundary. Batches that
// it has submitted before are finished by the stages of their own epoch, so each packet is decided by one epoch in all
// functions:
//
//     control thread                          worker
//     functions and stages are made
//     offer(stages) ────────────────────────▶ batches from here on use them
//                                             batches in flight land
//     stages are destroyed ◀───────────────── the former stages
//
// Nothing waits, neither worker nor device, and the memory of an epoch is freed when its last batch has landed.

#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "function/network_function.h"
#include "plan/device_plan.h"
#include "ring/lane.h"
#include "run/chain.h"
#include "run/lane_factory.h"

namespace penstock::function {
class HandingStage;
class StatesOfGrant;
}  // namespace penstock::function

namespace penstock::run {

/// One worker's stages of one epoch.
struct StageSet {
  std::vector<std::unique_ptr<function::CpuStage>> twins;  // by function
  // By function, null if it has none. They are destroyed before their twins.
  std::vector<std::unique_ptr<function::FinishStage>> finish;
  std::vector<std::unique_ptr<function::StateStage>> states;
  // Those of another process: the finish stages that hand it findings, and the state stages.
  std::vector<function::HandingStage*> handing;
  std::vector<function::StatesOfGrant*> granted_states;
  // By lane; empty while the lane has them. No lanes: the device is lost, and the twins do the work.
  std::vector<ring::LaneStages> lanes;
  std::size_t flights = 0;  // the worker's batches in flight that use them
};

/// Makes a worker's stages on the CPU. Functions that have a stage in `plan` also get finish and state stages; null: no
/// function has one.
[[nodiscard]] std::unique_ptr<StageSet> make_host_stages(std::span<const NamedFunction> functions,
                                                         const plan::DevicePlan* plan);

/// Makes the stages of one lane on the factory's device, which is selected. Throws CudaError.
[[nodiscard]] ring::LaneStages make_lane_stages(std::span<const NamedFunction> functions, const plan::DevicePlan& plan,
                                                const LaneFactory& factory, const plan::GpuShares& shares,
                                                unsigned worker, std::size_t batch_packets);

}  // namespace penstock::run
