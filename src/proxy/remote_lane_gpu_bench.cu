// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a proxy adds to a batch: the time from `start` until the results are available, of one batch at a time, by the
// host's clock. The proxy is in the same process, with threads and pages of its own as in another one; only the
// context of the GPU is the same.
//
//   gpu/own, gpu/proxy              a stage that reads the headers of each packet, on a GPU; only headers cross
//   simulated/own, simulated/proxy  the same without a device, on any machine. With few packets, the difference is what
//                                   the proxy itself takes; with many, what its simulated device copies once more
//
// Axis: packets of 1514 bytes in the batch.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/devices.h"
#include "gpu/per_packet.cuh"
#include "proxy/remote_lanes.h"
#include "proxy/server.h"
#include "proxy/testing/block_kernel.h"
#include "proxy/testing/host_backend.h"
#include "ring/lane.h"
#include "ring/packet_ring.h"
#include "run/lane_factory.h"
#include "run/testing/fakes.h"

namespace penstock::proxy {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kFrame = 1514;
constexpr std::size_t kMostPackets = 4096;  // 6 MiB

template <typename T>
T require(Result<T> result) {
  if (result) return std::move(*result);
  std::fputs((to_string(result.error()) + "\n").c_str(), stderr);
  std::exit(1);
}

struct LookCore {
  PENSTOCK_HOST_DEVICE Verdict operator()(PacketView packet) const noexcept {
    return packet.layout().has(PacketLayout::kNetworkHeader) ? packet.packet->verdict : Verdict::forward(0);
  }
};

class LookTables final : public function::LoadedTables {
 public:
  std::unique_ptr<DeviceStage> make_stage(const StageUse&) override {
    return std::make_unique<gpu::PerPacketStage<LookCore>>(LookCore{});
  }
  std::size_t bytes() const noexcept override { return 0; }
};

/// Under the name of the simulated one, so that a chain's function has the same recipe.
constexpr function::RemoteKernel kGpuKernels[] = {{
    "block",
    testing::check_block,
    [](const function::StageRecipe&) -> std::unique_ptr<function::LoadedTables> {
      return std::make_unique<LookTables>();
    },
    testing::needs_of_block,
}};

bool has_gpu() {
  static const bool has = gpu::list_devices().availability == gpu::Availability::kUsable;
  return has;
}

ring::LaneShape shape() {
  ring::SegmentShape segment;
  segment.down = *ring::record_layout({Field::ipv4_ttl, Field::ipv4_checksum});
  segment.stages.push_back({});
  return {kMostPackets * aligned_frame(kFrame), kMostPackets, {}, false, ring::Crossing::by_size, {segment}};
}

/// A batch of packets in memory that another process could map.
class Packets {
 public:
  explicit Packets(std::size_t count) : ring_(shape_of_ring()) {
    constexpr std::size_t kHeaders = 14 + 20 + 8;
    const auto frame = penstock::testing::PacketBuilder()
                           .eth()
                           .ipv4("192.0.2.1", "198.51.100.2")
                           .udp(4096, 53)
                           .raw(std::vector<std::uint8_t>(kFrame - kHeaders))
                           .bytes();
    for (std::size_t i = 0; i < count; ++i) {
      if (!ring_.filling()->append(frame, {0, kFrame, 0, LinkType::ethernet})) std::abort();
    }
    ring_.close_filling();
    batch_ = ring_.take();
  }
  [[nodiscard]] ring::PacketRing& ring() noexcept { return ring_; }
  [[nodiscard]] const Batch& batch() const noexcept { return *batch_; }

 private:
  static ring::RingShape shape_of_ring() {
    ring::RingShape shape;
    shape.batch_bytes = kMostPackets * aligned_frame(kFrame);
    shape.batch_packets = kMostPackets;
    shape.waiting_bytes = shape.batch_bytes;
    shape.shared = true;
    return shape;
  }

  ring::PacketRing ring_;
  Batch* batch_ = nullptr;
};

void time_batches(benchmark::State& state, ring::Lane& lane, const Batch& batch) {
  for (auto _ : state) {
    const auto start = Clock::now();
    bool good = lane.start(batch, 0, {});
    gpu::Progress progress = gpu::Progress::kRunning;
    while (good && (progress = lane.progress()) == gpu::Progress::kRunning) continue;
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count());
    if (!good || progress != gpu::Progress::kDone) return state.SkipWithError("the lane failed");
  }
}

void own(benchmark::State& state, bool simulated) {
  if (!simulated && !has_gpu()) return state.SkipWithError("no GPU");
  Packets packets(static_cast<std::size_t>(state.range(0)));
  ring::LaneStages stages(1);
  if (simulated) {
    ring::testing::Behaviour behaviour;
    stages[0].push_back(std::make_unique<ring::testing::SimulatedStage>(
        [](PacketView packet, std::byte*, const std::byte*) { return testing::block(packet, {}, 1); }));
    ring::testing::SimulatedLane lane(shape(), std::move(stages), behaviour);
    return time_batches(state, lane, packets.batch());
  }
  run::RunSettings settings;
  settings.processor = function::Processor::gpu;
  settings.gpus = {0};
  const auto factory = run::make_lane_factory(settings, 0);
  factory->select();
  const auto memory = factory->open(packets.ring().memory());
  stages[0].push_back(std::make_unique<gpu::PerPacketStage<LookCore>>(LookCore{}));
  const auto lane = factory->make_lane(shape(), std::move(stages), 0, 0, nullptr);
  time_batches(state, *lane, packets.batch());
}

void in_proxy(benchmark::State& state, bool simulated) {
  if (!simulated && !has_gpu()) return state.SkipWithError("no GPU");
  ServerSettings settings;
  settings.path =
      (std::filesystem::temp_directory_path() / ("penstock-lane-bench-" + std::to_string(::getpid()))).string();
  testing::HostDevice device;
  std::unique_ptr<Backend> backend;
  if (simulated) {
    backend = std::make_unique<testing::HostBackend>(device, testing::kBlockKernels);
  } else {
    backend = make_gpu_backend(0, kGpuKernels);
  }
  const std::string path = settings.path;
  const auto server = require(Server::start(std::move(settings), std::move(backend)));
  Packets packets(static_cast<std::size_t>(state.range(0)));
  run::testing::FakeChain chain;
  testing::add_block(chain, {});
  const auto remote = require(remote_lanes(path, {"bench", "1q"}));
  const auto factory = remote->make_factory(0);
  factory->select();
  const auto memory = factory->open(packets.ring().memory());
  const auto descriptors = factory->open_descriptors(packets.ring().descriptor_memory());
  StageUse use;
  use.batch_packets = kMostPackets;
  ring::LaneStages stages(1);
  stages[0].push_back(factory->make_stage(*chain.functions.front().function, use));
  const auto lane = factory->make_lane(shape(), std::move(stages), 0, 0, nullptr);
  time_batches(state, *lane, packets.batch());
}

}  // namespace
}  // namespace penstock::proxy

int main(int argc, char** argv) {
  using namespace penstock;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const bool simulated : {false, true}) {
    for (const auto& [name, run] : {std::pair{"own", &proxy::own}, std::pair{"proxy", &proxy::in_proxy}}) {
      benchmark::RegisterBenchmark((std::string(simulated ? "simulated/" : "gpu/") + name).c_str(), run, simulated)
          ->ArgName("packets")
          ->Arg(1)
          ->Arg(32)
          ->Arg(512)
          ->Arg(4096)
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
