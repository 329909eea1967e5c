// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "chain/gpu_run.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "chain/device_executor.h"
#include "chain/device_plan.h"
#include "gpu/cuda_error.h"
#include "gpu/devices.h"
#include "gpu/pinned_region.h"
#include "ring/lane.h"

namespace penstock::chain {

namespace {

/// The executor with all that it borrows.
class GpuExecutor final : public Executor {
 public:
  GpuExecutor(const Chain& chain, int device, DevicePlan plan, unsigned worker, ring::PacketRing& ring,
              WorkerCounters& counters, Trace* trace)
      : device_(device),
        plan_(std::move(plan)),
        pinned_(ring.memory()),
        executor_(chain, plan_, make_lanes(chain, ring), worker, counters, trace) {}

  void begin() noexcept override {
    // What the worker's thread launches goes to its device. Where this fails, all launches do, and the twins do the
    // work.
    try {
      gpu::use_device(device_);
    } catch (const gpu::CudaError&) {
    }
    executor_.begin();
  }
  bool submit(Batch& batch) noexcept override { return executor_.submit(batch); }
  Batch* retire() noexcept override { return executor_.retire(); }
  bool idle() const noexcept override { return executor_.idle(); }
  void pass_boundary() noexcept override { executor_.pass_boundary(); }
  void end() noexcept override { executor_.end(); }

 private:
  std::vector<std::unique_ptr<ring::Lane>> make_lanes(const Chain& chain, const ring::PacketRing& ring) const {
    const RunSettings& settings = chain.settings;
    const ring::RingShape& of_ring = ring.shape();
    const ring::LaneShape shape{
        of_ring.batch_bytes,
        of_ring.batch_packets,
        of_ring.room,
        plan_.hash_flows,
        settings.transfer == Transfer::zero_copy ? ring::Crossing::zero_copy : ring::Crossing::copy,
        plan_.segments};
    std::vector<std::unique_ptr<ring::Lane>> lanes;
    for (unsigned i = 0; i < lanes_of(settings); ++i) {
      std::vector<std::vector<std::unique_ptr<gpu::GpuStage>>> stages;
      for (const ring::SegmentShape& segment : plan_.segments) {
        stages.emplace_back();
        for (const ring::SegmentShape::Stage& stage : segment.stages) {
          const NamedFunction& named = chain.functions[stage.function];
          auto made = named.function->make_gpu_stage();
          if (made == nullptr) throw gpu::CudaError(0, named.name + " has no GPU stage in this program");
          stages.back().push_back(std::move(made));
        }
      }
      lanes.push_back(ring::make_device_lane(shape, std::move(stages)));
    }
    return lanes;
  }

  int device_;
  DevicePlan plan_;
  gpu::PinnedRegion pinned_;
  DeviceExecutor executor_;
};

}  // namespace

unsigned lanes_of(const RunSettings& settings) noexcept {
  return settings.transfer == Transfer::direct ? 1 : settings.streams;
}

std::unique_ptr<Executor> make_gpu_executor(const Chain& chain, unsigned worker, ring::PacketRing& ring,
                                            WorkerCounters& counters, Trace* trace) {
  const RunSettings& settings = chain.settings;
  const int device = settings.gpus[worker % settings.gpus.size()];
  gpu::use_device(device);
  auto plan = plan_device(chain.traits(), settings.whole_frames);
  if (!plan) throw gpu::CudaError(0, to_string(plan.error()));  // config has made sure that there is one
  return std::make_unique<GpuExecutor>(chain, device, std::move(*plan), worker, ring, counters, trace);
}

}  // namespace penstock::chain
