// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/lane_factory.h"

#include <fmt/format.h>

#include <utility>

#include "gpu/devices.h"
#include "gpu/pinned_region.h"

namespace penstock::run {

namespace {

class GpuLanes final : public LaneFactory {
 public:
  explicit GpuLanes(int index) : index_(index) {}

  std::string device() const override { return fmt::format("GPU {}", index_); }
  std::string advice() const override {
    return "see `nvidia-smi` and `dmesg`, or use another one (`--gpus`) or the CPU (`--processor cpu`)";
  }
  void select() const override { gpu::use_device(index_); }
  bool is_lost() const noexcept override { return gpu::is_lost(index_); }
  std::unique_ptr<DeviceStage> make_stage(function::NetworkFunction& function, const StageUse& use) const override {
    return function.make_device_stage(function::Processor::gpu, use);
  }
  std::shared_ptr<void> open(std::span<std::uint8_t> memory) const override {
    select();
    return std::make_shared<gpu::PinnedRegion>(memory);
  }
  std::unique_ptr<ring::Lane> make_lane(const ring::LaneShape& shape, ring::LaneStages stages, unsigned worker,
                                        unsigned lane, ring::Timeline* timeline) const override {
    ring::SpanLog* log = nullptr;
    if (timeline != nullptr)
      log = &timeline->add_stream({index_, worker, lane}, shape.segments, &timeline->clock_of(index_));
    return ring::make_device_lane(shape, std::move(stages), log);
  }

 private:
  const int index_;
};

}  // namespace

std::unique_ptr<LaneFactory> make_lane_factory(const RunSettings& settings, unsigned worker) {
  if (is_device(settings.processor) && settings.remote) return settings.remote->make_factory(worker);
  switch (settings.processor) {
    case function::Processor::gpu: return std::make_unique<GpuLanes>(settings.gpus[worker % settings.gpus.size()]);
    case function::Processor::cpu: break;
  }
  return nullptr;
}

}  // namespace penstock::run
