// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How long a call of the control thread holds up workers whose batches are on the device. Workers send small batches
// over lanes, without a pause; the control thread makes one call, again and again. The time is that of the call.
// `stall_us` is the longest interval between two batches that a worker got back during the call, the mean over all
// calls, and `worst_us` the longest of all. `none` makes no call: what the machine does by itself.
//
//   take/…, give/…   memory of the device or of the host, taken and given back
//   copy/…           64 MiB to the device
//   load/…           kernels, streams, events and graphs
//   host/…           memory of the process, without the driver

#include <benchmark/benchmark.h>
#include <cuda_runtime.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/check.cuh"
#include "gpu/devices.h"
#include "gpu/memory.h"
#include "gpu/per_packet.cuh"
#include "gpu/stream.h"
#include "ring/lane.h"

namespace penstock::ring {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLarge = std::size_t{64} << 20;
constexpr std::size_t kMedium = std::size_t{2} << 20;
constexpr std::size_t kSmall = std::size_t{4} << 10;
constexpr int kCalls = 20;

double us(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

struct LookCore {
  PENSTOCK_HOST_DEVICE Verdict operator()(PacketView packet) const noexcept {
    return packet.layout().has(PacketLayout::kNetworkHeader) ? packet.packet->verdict : Verdict::forward(1);
  }
};

/// A thread that sends batches over its lanes, one in flight on each.
class Traffic {
 public:
  Traffic() : thread_([this] { run(); }) {}
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;
  ~Traffic() {
    stop_ = true;
    thread_.join();
  }
  /// The longest interval between two batches since the last call, in nanoseconds. An interval counts when it ends.
  std::int64_t take_longest() noexcept { return longest_.exchange(0); }
  std::uint64_t batches() const noexcept { return batches_; }

 private:
  static constexpr std::size_t kLanes = 4;
  static constexpr std::size_t kPackets = 256;
  static constexpr std::uint32_t kFrame = 512;

  void run() {
    SegmentShape segment;
    segment.frames_up = segment.frames_down = true;
    segment.stages.push_back({});
    gpu::PinnedBuffer<std::uint8_t> bytes(kLanes * kPackets * kFrame);
    std::vector<PacketDescriptor> descriptors(kLanes * kPackets);
    std::vector<std::unique_ptr<Lane>> lanes;
    std::vector<Batch> batches;
    const std::vector<std::uint8_t> frame(kFrame);
    for (std::size_t i = 0; i < kLanes; ++i) {
      LaneStages stages(1);
      stages[0].push_back(std::make_unique<gpu::PerPacketStage<LookCore>>(LookCore{}));
      lanes.push_back(
          make_device_lane({kPackets * kFrame, kPackets, {}, false, Crossing::by_size, {segment}}, std::move(stages)));
      batches.emplace_back(bytes.span().subspan(i * kPackets * kFrame, kPackets * kFrame),
                           std::span(descriptors).subspan(i * kPackets, kPackets), FrameRoom{});
      while (batches.back().append(frame, {0, kFrame, 0, LinkType::ethernet})) continue;
    }
    std::array<bool, kLanes> busy{};
    Clock::time_point last = Clock::now();
    while (!stop_) {
      for (std::size_t i = 0; i < kLanes; ++i) {
        if (!busy[i]) {
          busy[i] = lanes[i]->start(batches[i], 0, {});
        } else if (lanes[i]->progress() != gpu::Progress::kRunning) {
          busy[i] = false;
          const Clock::time_point now = Clock::now();
          if (batches_ > 1000) {  // after kernels were loaded
            const std::int64_t gap = (now - last).count();
            std::int64_t longest = longest_.load();
            while (gap > longest && !longest_.compare_exchange_weak(longest, gap)) continue;
          }
          last = now;
          ++batches_;
        }
      }
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<std::int64_t> longest_{0};
  std::atomic<std::uint64_t> batches_{0};
  std::thread thread_;
};

/// A call with what has to happen before and after it, which is not timed.
struct Call {
  std::string name;
  std::function<void()> before;
  std::function<void()> call;
  std::function<void()> after;
};

void hold_up(benchmark::State& state, const Call& call) {
  static const gpu::DeviceList devices = gpu::list_devices();
  if (devices.availability != gpu::Availability::kUsable) return state.SkipWithError(devices.reason.c_str());
  constexpr std::size_t kWorkers = 4;
  std::vector<std::unique_ptr<Traffic>> workers;
  for (std::size_t i = 0; i < kWorkers; ++i) workers.push_back(std::make_unique<Traffic>());
  for (const auto& worker : workers) {
    while (worker->batches() < 2000) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  const auto longest_of_workers = [&] {
    std::int64_t longest = 0;
    for (const auto& worker : workers) longest = std::max(longest, worker->take_longest());
    return static_cast<double>(longest) / 1e3;
  };
  double sum_us = 0, worst_us = 0;
  for (auto _ : state) {
    if (call.before) call.before();
    std::this_thread::sleep_for(std::chrono::milliseconds{3});
    static_cast<void>(longest_of_workers());
    const Clock::time_point start = Clock::now();
    call.call();
    const Clock::duration took = Clock::now() - start;
    std::this_thread::sleep_for(std::chrono::milliseconds{2});  // an interval that the call made longer ends
    const double stall_us = longest_of_workers();
    sum_us += stall_us;
    worst_us = std::max(worst_us, stall_us);
    state.SetIterationTime(us(took) / 1e6);
    if (call.after) call.after();
  }
  state.counters["stall_us"] = sum_us / static_cast<double>(state.iterations());
  state.counters["worst_us"] = worst_us;
}

/// Kernels that are loaded when they are first used.
template <int kIndex>
__global__ void seldom(std::uint32_t* word) {
  for (int i = 0; i < kIndex + 2; ++i) word[threadIdx.x + i * 3] = word[threadIdx.x * 5 + kIndex] * (kIndex * 7 + 3);
}
template <int... kIndex>
std::array<const void*, sizeof...(kIndex)> kernels_of(std::integer_sequence<int, kIndex...>) {
  return {reinterpret_cast<const void*>(&seldom<kIndex>)...};
}

/// Things that calls share.
struct Bed {
  void* memory = nullptr;
  cudaMemPool_t pool = nullptr;
  gpu::Stream stream;
  cudaStream_t made = nullptr;
  std::vector<cudaEvent_t> events = std::vector<cudaEvent_t>(64);
  std::vector<std::uint8_t> host = std::vector<std::uint8_t>(kLarge, 1);
  gpu::PinnedBuffer<std::uint8_t> pinned{kLarge};
  gpu::DeviceBuffer<std::uint8_t> device{kLarge};
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  std::size_t next_kernel = 0;

  Bed() {
    std::memset(pinned.data(), 1, kLarge);
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = gpu::current_device();
    gpu::check(cudaMemPoolCreate(&pool, &properties));
    std::uint64_t all = ~std::uint64_t{0};
    gpu::check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
    gpu::check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 8; ++i) gpu::check(cudaMemsetAsync(device.data() + i * 4096, 0, 4096, stream.get()));
    gpu::check(cudaStreamEndCapture(stream.get(), &graph));
  }

  void take_from_pool() {
    gpu::check(cudaMallocFromPoolAsync(&memory, kLarge, pool, stream.get()));
    stream.wait();
  }
  void give_to_pool() {
    gpu::check(cudaFreeAsync(std::exchange(memory, nullptr), stream.get()));
    stream.wait();
  }
  void trim() { gpu::check(cudaMemPoolTrimTo(pool, 0)); }
  void copy_in_pieces(std::size_t piece) {
    for (std::size_t at = 0; at < kLarge; at += piece) {
      std::memcpy(pinned.data(), host.data() + at, piece);
      gpu::check(cudaMemcpyAsync(device.data() + at, pinned.data(), piece, cudaMemcpyDefault, stream.get()));
      stream.wait();
    }
  }
};

void add_calls(std::vector<Call>& calls, Bed& bed) {
  const auto malloc_large = [&] { gpu::check(cudaMalloc(&bed.memory, kLarge)); };
  const auto free_device = [&] { gpu::check(cudaFree(std::exchange(bed.memory, nullptr))); };
  calls.push_back({"none", {}, [] { std::this_thread::sleep_for(std::chrono::milliseconds{5}); }, {}});
  calls.push_back({"take/cudaMalloc", {}, malloc_large, free_device});
  calls.push_back({"give/cudaFree", malloc_large, free_device, {}});
  calls.push_back(
      {"take/pool_that_grows", [&] { bed.trim(); }, [&] { bed.take_from_pool(); }, [&] { bed.give_to_pool(); }});
  calls.push_back({"take/pool", {}, [&] { bed.take_from_pool(); }, [&] { bed.give_to_pool(); }});
  calls.push_back({"give/pool", [&] { bed.take_from_pool(); }, [&] { bed.give_to_pool(); }, {}});
  calls.push_back({"give/pool_that_shrinks",
                   [&] {
                     bed.take_from_pool();
                     bed.give_to_pool();
                   },
                   [&] { bed.trim(); },
                   {}});
  for (const auto& [name, bytes] :
       {std::pair{"4KiB", kSmall}, std::pair{"2MiB", kMedium}, std::pair{"64MiB", kLarge}}) {
    const auto host_alloc = [&bed, bytes = bytes] {
      gpu::check(cudaHostAlloc(&bed.memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
    };
    const auto host_free = [&] { gpu::check(cudaFreeHost(std::exchange(bed.memory, nullptr))); };
    calls.push_back({std::string("take/cudaHostAlloc_") + name, {}, host_alloc, host_free});
    calls.push_back({std::string("give/cudaFreeHost_") + name, host_alloc, host_free, {}});
  }
  calls.push_back({"copy/cudaMemcpy_pageable",
                   {},
                   [&] {
                     gpu::check(cudaMemcpy(bed.device.data(), bed.host.data(), kLarge, cudaMemcpyDefault));
                     gpu::check(cudaStreamSynchronize(cudaStreamLegacy));
                   },
                   {}});
  calls.push_back({"copy/cudaMemcpy_pageable_64KiB",
                   {},
                   [&] {
                     gpu::check(cudaMemcpy(bed.device.data(), bed.host.data(), 64 << 10, cudaMemcpyDefault));
                     gpu::check(cudaStreamSynchronize(cudaStreamLegacy));
                   },
                   {}});
  calls.push_back(
      {"copy/one_pinned",
       {},
       [&] {
         gpu::check(cudaMemcpyAsync(bed.device.data(), bed.pinned.data(), kLarge, cudaMemcpyDefault, bed.stream.get()));
         bed.stream.wait();
       },
       {}});
  for (const std::size_t kib : {64, 256, 1024})
    calls.push_back(
        {"copy/pieces_" + std::to_string(kib) + "KiB", {}, [&bed, kib] { bed.copy_in_pieces(kib << 10); }, {}});
  calls.push_back({"copy/gpu_copy", {}, [&] { gpu::copy_to_device(bed.device.data(), bed.host.data(), kLarge); }, {}});
  calls.push_back({"load/stream",
                   {},
                   [&] { gpu::check(cudaStreamCreateWithFlags(&bed.made, cudaStreamNonBlocking)); },
                   [&] { gpu::check(cudaStreamDestroy(bed.made)); }});
  calls.push_back({"load/stream_destroyed",
                   [&] { gpu::check(cudaStreamCreateWithFlags(&bed.made, cudaStreamNonBlocking)); },
                   [&] { gpu::check(cudaStreamDestroy(bed.made)); },
                   {}});
  const auto make_events = [&] {
    for (cudaEvent_t& event : bed.events) gpu::check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  };
  const auto destroy_events = [&] {
    for (cudaEvent_t& event : bed.events) gpu::check(cudaEventDestroy(event));
  };
  calls.push_back({"load/64_events", {}, make_events, destroy_events});
  calls.push_back({"load/64_events_destroyed", make_events, destroy_events, {}});
  const auto instantiate = [&] { gpu::check(cudaGraphInstantiate(&bed.exec, bed.graph, 0)); };
  const auto destroy_graph = [&] { gpu::check(cudaGraphExecDestroy(bed.exec)); };
  calls.push_back({"load/graph", {}, instantiate, destroy_graph});
  calls.push_back({"load/graph_launched",
                   {},
                   [&, instantiate] {
                     instantiate();
                     gpu::check(cudaGraphLaunch(bed.exec, bed.stream.get()));
                     bed.stream.wait();
                   },
                   destroy_graph});
  calls.push_back({"load/graph_destroyed",
                   [&, instantiate] {
                     instantiate();
                     gpu::check(cudaGraphLaunch(bed.exec, bed.stream.get()));
                     bed.stream.wait();
                   },
                   destroy_graph,
                   {}});
  calls.push_back({"load/kernel_by_attributes",
                   {},
                   [&] {
                     static const auto all = kernels_of(std::make_integer_sequence<int, kCalls>{});
                     cudaFuncAttributes attributes{};
                     gpu::check(cudaFuncGetAttributes(&attributes, all[bed.next_kernel++ % all.size()]));
                   },
                   {}});
  calls.push_back({"load/32_attributes",
                   {},
                   [&] {
                     const void* const kernel = reinterpret_cast<const void*>(&seldom<0>);
                     for (int i = 0; i < 32; ++i) {
                       int blocks = 0;
                       gpu::check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
                       gpu::check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 256, 65536));
                     }
                   },
                   {}});
  constexpr std::size_t kHost = std::size_t{512} << 20;
  const auto map = [&] {
    bed.memory = mmap(nullptr, kHost, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(bed.memory, 1, kHost);
  };
  const auto unmap = [&] { munmap(std::exchange(bed.memory, nullptr), kHost); };
  calls.push_back({"host/512MiB_mapped", {}, map, unmap});
  calls.push_back({"host/512MiB_unmapped", map, unmap, {}});
}

}  // namespace
}  // namespace penstock::ring

int main(int argc, char** argv) {
  using namespace penstock;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  std::unique_ptr<ring::Bed> bed;
  std::vector<ring::Call> calls;
  if (gpu::list_devices().availability == gpu::Availability::kUsable) {
    bed = std::make_unique<ring::Bed>();
    ring::add_calls(calls, *bed);
  } else {
    calls.push_back({"none", {}, [] {}, {}});  // says why there is no GPU
  }
  for (const ring::Call& call : calls) {
    benchmark::RegisterBenchmark(call.name.c_str(), [&call](benchmark::State& state) { ring::hold_up(state, call); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond)
        ->Iterations(ring::kCalls);
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
