// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/device_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/least_limit.h"
#include "base/log.h"
#include "base/slow_notice.h"
#include "gpu/cuda_error.h"
#include "plan/device_plan.h"
#include "ring/lane.h"
#include "run/device_executor.h"
#include "run/epoch.h"
#include "run/lane_factory.h"

namespace penstock::run {

namespace {

/// Names of the plan's segments in the timeline: the names of their functions.
std::vector<std::string> segment_names(const Chain& chain, const plan::DevicePlan& plan) {
  std::vector<std::string> names;
  for (const ring::SegmentShape& segment : plan.segments) {
    std::string& name = names.emplace_back();
    for (const ring::SegmentShape::Stage& stage : segment.stages) {
      name += (name.empty() ? "" : ", ") + chain.functions[stage.function].name;
    }
  }
  return names;
}

std::size_t collects_from(const RunSettings& settings) {
  if (!settings.collects_launches) return ring::kCollectBytes;
  return settings.workers_of_device() > 1 ? ring::kCollectFromOfSeveral : 0;
}

std::vector<std::unique_ptr<ring::Lane>> make_lanes(const Chain& chain, const plan::DevicePlan& plan,
                                                    const LaneFactory& factory, unsigned worker,
                                                    const ring::RingShape& of_ring) {
  const auto crossing = [&] {
    switch (chain.settings.transfer) {
      case Transfer::zero_copy: return ring::Crossing::zero_copy;
      case Transfer::automatic: return ring::Crossing::by_size;
      case Transfer::direct:
      case Transfer::streamed: break;
    }
    return ring::Crossing::copy;
  };
  const std::vector<function::NfTraits> traits = chain.traits();
  const std::size_t grown_bytes =
      FrameScratch::bytes_for(of_ring.batch_bytes, of_ring.batch_packets, plan::growth_of(traits));
  const ring::LaneShape shape{of_ring.batch_bytes,
                              of_ring.batch_packets,
                              plan::room_on_device(traits, plan),
                              plan.hash_flows,
                              crossing(),
                              plan.segments,
                              plan::sends_packets_again(plan) ? grown_bytes : 0,
                              collects_from(chain.settings)};
  if (chain.timeline != nullptr) chain.timeline->name_segments(segment_names(chain, plan));
  std::vector<std::unique_ptr<ring::Lane>> lanes;
  for (unsigned i = 0; i < lanes_of(chain.settings, worker); ++i) {
    ring::LaneStages stages =
        make_lane_stages(chain.functions, plan, factory, chain.settings.gpu_shares, worker, of_ring.batch_packets);
    lanes.push_back(factory.make_lane(shape, std::move(stages), worker, i, chain.timeline.get()));
  }
  return lanes;
}

/// With what they need, apart from the memory from which frames may be sent again.
LaneSet make_lane_set(const Chain& chain, const plan::DevicePlan& plan, std::unique_ptr<LaneFactory> factory,
                      unsigned worker, ring::PacketRing& ring) {
  LaneSet set;
  set.factory = std::move(factory);
  set.factory->select();
  set.memory.push_back(set.factory->open(ring.memory()));
  if (set.factory->is_remote()) {
    set.memory.push_back(set.factory->open_descriptors(ring.descriptor_memory()));
    // What ports lend, unless they are not open yet.
    for (const std::span<std::uint8_t> lent : ring.lent_memory()) set.memory.push_back(set.factory->open(lent));
  }
  set.lanes = make_lanes(chain, plan, *set.factory, worker, ring.shape());
  return set;
}

/// Without lanes if they are to be in another process that is not there yet, or that goes meanwhile.
LaneSet make_first_lane_set(const Chain& chain, const plan::DevicePlan& plan, unsigned worker, ring::PacketRing& ring) {
  // Pages for descriptors are allocated while lanes are made.
  std::jthread resident([&ring](const std::stop_token& stop) { ring.make_resident(stop); });
  const auto is_gone = [](const LaneFactory& factory) { return factory.is_remote() && factory.is_lost(); };
  auto factory = make_lane_factory(chain.settings, worker);
  LaneSet set;
  if (!is_gone(*factory)) {
    try {
      set = make_lane_set(chain, plan, std::move(factory), worker, ring);
    } catch (const gpu::CudaError&) {
      factory = make_lane_factory(chain.settings, worker);
      if (!is_gone(*factory)) throw;  // the thread stops early
    }
  }
  if (set.factory == nullptr) {
    set.factory = std::move(factory);
    set.lanes.resize(lanes_of(chain.settings, worker));
  }
  resident.join();
  return set;
}

class WorkerOnDevice final : public DeviceExecutor {
 public:
  WorkerOnDevice(const Chain& chain, const plan::DevicePlan& plan, unsigned worker, ring::PacketRing& ring,
                 WorkerCounters& counters, Taps* taps)
      : DeviceExecutor(chain, plan, make_first_lane_set(chain, plan, worker, ring), worker, counters, taps),
        chain_(chain),
        plan_(plan),
        worker_(worker),
        ring_(ring),
        sent_again_(memory_sent_again()) {
    if (!has_lanes()) return;
    try {
      open_sent_again(lane_set());
      if (!send_first_batches()) throw first_batch_lost(factory());
    } catch (const gpu::CudaError&) {
      if (!has_lost_remote_device()) throw;  // else the CPU does the work until it is there again
    }
  }

  void begin() noexcept override {
    DeviceExecutor::begin();
    if (!has_lanes()) return;
    // If that fails, all launches fail too, and the CPU twins do the work.
    try {
      factory().select();
    } catch (const gpu::CudaError&) {
    }
    // The CUDA runtime has state per thread, so this thread warms up as well.
    static_cast<void>(send_first_batches());
  }

  std::unique_ptr<LaneSet> make_lanes() const override {
    auto set = std::make_unique<LaneSet>(
        make_lane_set(chain_, plan_, make_lane_factory(chain_.settings, worker_), worker_, ring_));
    open_sent_again(*set);
    std::vector<ring::Lane*> lanes;
    for (const auto& lane : set->lanes) lanes.push_back(lane.get());
    const WarmUp result = run::warm_up(lanes, plan_, ring_.spare());
    if (result == WarmUp::hangs) chain_.settings.remote->disconnect();  // else the end of its lane would wait for it
    if (result != WarmUp::done) throw first_batch_lost(*set->factory);
    return set;
  }

 private:
  [[nodiscard]] const LaneFactory& factory() noexcept { return *lane_set().factory; }
  void open_sent_again(LaneSet& set) const {
    for (const std::span<std::uint8_t> memory : sent_again_) set.memory.push_back(set.factory->open(memory));
  }
  [[nodiscard]] static gpu::CudaError first_batch_lost(const LaneFactory& factory) {
    return {0, fmt::format("the first batch did not come back from {}", factory.device())};
  }

  /// False if the device fails. If it hangs, the process ends: destroying its resources would block in the driver.
  bool send_first_batches() noexcept {
    const SlowNotice notice(fmt::format("waiting for {} to finish its first batch; giving up after {} s …",
                                        factory().device(), kMostWarmUp.count()));
    const WarmUp result = warm_up(*ring_.filling());
    if (result == WarmUp::hangs) {
      log_error(
          "{} has not finished its first batch within {} s: it hangs, {}; {}", factory().device(), kMostWarmUp.count(),
          factory().is_remote() ? "others keep it busy, or a limit of the rate is too low for the batches that try it"
                                : "or other processes keep it busy",
          factory().advice());
      std::_Exit(1);
    }
    return result == WarmUp::done;
  }

  const Chain& chain_;
  const plan::DevicePlan plan_;
  const unsigned worker_;
  ring::PacketRing& ring_;
  const std::vector<std::span<std::uint8_t>> sent_again_;  // from which frames may be sent again
};

/// Whether each worker has at least two batches at its proxy, also with one stream. Then the device need not wait for
/// what the worker does between two batches, which would cost the run a part of its share. Not with a bound, for which
/// the time of the one that waits would count.
bool batch_waits_at_proxy(const RunSettings& settings) noexcept {
  return !settings.proxy.empty() && settings.transfer != Transfer::direct && settings.proxy_latency.count() == 0;
}

}  // namespace

unsigned streams_of(const RunSettings& settings, unsigned worker) noexcept {
  if (settings.transfer == Transfer::direct) return 1;
  if (settings.queueing == Queueing::per_worker) return settings.streams;
  const unsigned more = worker < settings.streams % settings.workers ? 1 : 0;
  return std::max(1U, settings.streams / settings.workers + more);
}

unsigned lanes_of(const RunSettings& settings, unsigned worker) noexcept {
  return std::max(streams_of(settings, worker), batch_waits_at_proxy(settings) ? 2U : 1U);
}

RemoteLimits limits_at_proxy(const RunSettings& settings) noexcept {
  RemoteLimits limits = settings.proxy_limits;
  if (settings.proxy.empty()) return limits;
  unsigned streams = 0;
  for (unsigned worker = 0; worker < settings.workers; ++worker) streams += streams_of(settings, worker);
  limits.batches = least_limit(limits.batches, streams);
  return limits;
}

FrameRoom room_in_batches(const Chain& chain) {
  const std::vector<function::NfTraits> traits = chain.traits();
  const auto plan = chain.device_plan();
  return plan ? plan::growth_of(std::span(traits).first(plan::functions_before_device(*plan))) : FrameRoom{};
}

std::uint32_t most_lent_bytes(const Chain& chain) {
  const FrameRoom growth = plan::growth_of(chain.traits());
  const auto plan = chain.device_plan();
  const auto carries_frames = [](const ring::SegmentShape& s) { return s.frames_up || s.frames_down; };
  if (!plan || plan->segments.empty() || chain.emits() || growth.head + growth.tail > 0 ||
      std::ranges::any_of(plan->segments, carries_frames)) {
    return Batch::kNoLimit;
  }
  return ring::kHeaderBytes;
}

PacketMemory::Register registers_packet_memory(const RunSettings& settings) {
  std::shared_ptr<const LaneFactory> factory = make_lane_factory(settings, 0);
  if (factory == nullptr) return {};
  return [factory = std::move(factory)](std::span<std::uint8_t> memory) -> Result<std::shared_ptr<void>> {
    try {
      factory->select();
      return factory->open(memory);
    } catch (const gpu::CudaError& error) {
      return failure(
          Error{{}, factory->device() + " cannot use the memory of a port", error.what(), "memory that can be pinned"});
    }
  };
}

std::unique_ptr<StageSet> make_device_stages(const Chain& chain, std::span<const NamedFunction> functions,
                                             const plan::DevicePlan& plan, unsigned worker, std::size_t batch_packets) {
  const std::unique_ptr<LaneFactory> factory = make_lane_factory(chain.settings, worker);
  auto stages = make_host_stages(functions, &plan);
  try {
    factory->select();
    for (unsigned i = 0; i < lanes_of(chain.settings, worker); ++i)
      stages->lanes.push_back(
          make_lane_stages(functions, plan, *factory, chain.settings.gpu_shares, worker, batch_packets));
  } catch (const gpu::CudaError&) {
    if (!factory->is_lost()) throw;
    stages->lanes.clear();
  }
  return stages;
}

std::unique_ptr<Executor> make_executor_on_device(const Chain& chain, unsigned worker, ring::PacketRing& ring,
                                                  WorkerCounters& counters, Taps* taps) {
  auto plan = chain.device_plan();
  if (!plan) throw gpu::CudaError(0, to_string(plan.error()));  // the configuration was checked
  return std::make_unique<WorkerOnDevice>(chain, *plan, worker, ring, counters, taps);
}

}  // namespace penstock::run
