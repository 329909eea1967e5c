// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The fixed cost of a batch, independent of its content.
//
//   lane/…       a batch that passes a lane with one stage that reads each packet, from `start` until the results are
//                available, by the host's clock. Axes: kind of transfer, frames or headers, packets
//   kernels/…    as many kernels as a batch of a short chain has, launched one by one or as a CUDA graph, followed
//                by an event. `enqueue_us` is the time until the host can continue, the time itself until the event
//   lent/…       frames that are lent from host memory, one every `stride` bytes, 64 MiB in all, in batches of at most
//                4 MiB and 16,384 frames: read by a kernel (`gather`), copied in rows without the gaps (`rows`), or
//                together with them (`window`). With `back`, a copy engine brings as many bytes back at the same time.
//                `Mpps`: million frames per second, `GBps`: bytes of frames
//   pack/…       the kernels that determine the places of returning packets, for a batch of which every other
//                packet was dropped: `measure`, then `pack_records` for frames. Device time for one such pair

#include <benchmark/benchmark.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/check.cuh"
#include "gpu/devices.h"
#include "gpu/memory.h"
#include "gpu/per_packet.cuh"
#include "gpu/stream.h"
#include "ring/lane.h"
#include "ring/lane_kernels.cuh"

namespace penstock::ring {
namespace {

constexpr std::size_t kBatchBytes = std::size_t{4} << 20;
constexpr std::size_t kBatchPackets = 16384;
constexpr std::size_t kFrame = 1514;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

bool no_gpu(benchmark::State& state) {
  static const gpu::DeviceList devices = gpu::list_devices();
  if (devices.availability == gpu::Availability::kUsable) return false;
  state.SkipWithError(devices.reason.c_str());
  return true;
}

struct LookCore {
  PENSTOCK_HOST_DEVICE Verdict operator()(PacketView packet) const noexcept {
    return packet.layout().has(PacketLayout::kNetworkHeader) ? packet.packet->verdict : Verdict::forward(1);
  }
};

void lane(benchmark::State& state, Crossing crossing, bool whole) {
  if (no_gpu(state)) return;
  SegmentShape segment;
  segment.frames_up = segment.frames_down = whole;
  if (!whole) segment.down = *record_layout({Field::ipv4_ttl, Field::ipv4_checksum, Field::eth_dst, Field::eth_src});
  segment.stages.push_back({});
  LaneStages stages(1);
  stages[0].push_back(std::make_unique<gpu::PerPacketStage<LookCore>>(LookCore{}));
  const auto lane = make_device_lane({kBatchBytes, kBatchPackets, {}, false, crossing, {segment}}, std::move(stages));
  gpu::PinnedBuffer<std::uint8_t> bytes(kBatchBytes);
  std::vector<PacketDescriptor> descriptors(kBatchPackets);
  Batch batch(std::span(bytes.data(), bytes.size()), descriptors, {});
  const std::vector<std::uint8_t> frame(kFrame);
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    if (!batch.append(frame, {0, kFrame, 0, LinkType::ethernet})) return state.SkipWithError("the batch is full");
  }
  double enqueue = 0;
  for (auto _ : state) {
    const auto start = Clock::now();
    bool good = lane->start(batch, 0, {});
    enqueue += seconds_since(start);
    gpu::Progress progress = gpu::Progress::kRunning;
    while (good && (progress = lane->progress()) == gpu::Progress::kRunning) continue;
    state.SetIterationTime(seconds_since(start));
    if (!good || progress != gpu::Progress::kDone) return state.SkipWithError("the lane failed");
  }
  state.counters["enqueue_us"] = enqueue * 1e6 / static_cast<double>(state.iterations());
}

__global__ void touch(std::uint32_t* word) {
  if (threadIdx.x == 0) *word += 1;
}

/// Runs `enqueue`, and then polls like a worker.
template <typename Enqueue>
void time_kernels(benchmark::State& state, const gpu::Stream& stream, Enqueue enqueue) {
  const gpu::Event done;
  double enqueued = 0;
  for (auto _ : state) {
    const auto start = Clock::now();
    enqueue();
    const bool recorded = done.record(stream);
    enqueued += seconds_since(start);
    while (recorded && done.progress() == gpu::Progress::kRunning) continue;
    state.SetIterationTime(seconds_since(start));
    if (!recorded) return state.SkipWithError("an event was refused");
  }
  gpu::check_launch();
  state.counters["enqueue_us"] = enqueued * 1e6 / static_cast<double>(state.iterations());
}

void launched(benchmark::State& state) {
  if (no_gpu(state)) return;
  const gpu::Stream stream;
  gpu::DeviceBuffer<std::uint32_t> word(1);
  time_kernels(state, stream, [&] {
    for (std::int64_t i = 0; i < state.range(0); ++i) touch<<<8, 256, 0, stream.get()>>>(word.data());
  });
}

void replayed(benchmark::State& state) {
  if (no_gpu(state)) return;
  const gpu::Stream stream;
  gpu::DeviceBuffer<std::uint32_t> word(1);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  gpu::check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  for (std::int64_t i = 0; i < state.range(0); ++i) touch<<<8, 256, 0, stream.get()>>>(word.data());
  gpu::check(cudaStreamEndCapture(stream.get(), &graph));
  gpu::check(cudaGraphInstantiate(&exec, graph, 0));
  cudaKernelNodeParams parameters{};
  std::size_t count = static_cast<std::size_t>(state.range(0));
  std::vector<cudaGraphNode_t> nodes(count);
  gpu::check(cudaGraphGetNodes(graph, nodes.data(), &count));
  gpu::check(cudaGraphKernelNodeGetParams(nodes[0], &parameters));
  const bool with_changes = state.range(1) != 0;
  time_kernels(state, stream, [&] {
    // Batches differ in the number of packets, and so in the grid and arguments of each kernel.
    for (std::size_t i = 0; with_changes && i < count; ++i) {
      static_cast<void>(cudaGraphExecKernelNodeSetParams(exec, nodes[i], &parameters));
    }
    static_cast<void>(cudaGraphLaunch(exec, stream.get()));
  });
  static_cast<void>(cudaGraphExecDestroy(exec));
  static_cast<void>(cudaGraphDestroy(graph));
}

void pack(benchmark::State& state) {
  if (no_gpu(state)) return;
  constexpr int kRounds = 200;
  const auto count = static_cast<std::uint32_t>(state.range(0));
  std::vector<PacketDescriptor> packets(count);
  std::uint32_t last = 0, units_before_last = 0, units = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    packets[i].length = 60 + i % 1455;
    packets[i].verdict = i % 2 == 0 ? Verdict::forward(0) : Verdict::drop(0);
    if (i % 2 != 0) continue;
    last = i;
    units_before_last = units;
    units += (packets[i].length + kFrameAlignment - 1) / kFrameAlignment;
  }
  gpu::DeviceBuffer<PacketDescriptor> descriptors{std::span<const PacketDescriptor>(packets)};
  gpu::DeviceBuffer<Verdict> verdicts(count);
  gpu::DeviceBuffer<kernels::Sum> sums(gpu::blocks_for(count));
  gpu::DeviceBuffer<std::uint32_t> places(count);
  const gpu::Stream stream;
  const gpu::Event start(gpu::Event::Timing::kOn), end(gpu::Event::Timing::kOn);
  std::uint8_t* const none = nullptr;
  for (auto _ : state) {
    bool good = start.record(stream);
    for (int round = 0; good && round < kRounds; ++round) {
      good = gpu::launch_threads(kernels::measure, count, stream, descriptors.data(), verdicts.data(), sums.data(),
                                 count) &&
             gpu::launch_threads(kernels::pack_records, count, stream, none, descriptors.data(), sums.data(),
                                 RecordLayout{}, none, places.data(), count);
    }
    if (!good || !end.record(stream)) return state.SkipWithError("a launch was refused");
    end.wait();
    state.SetIterationTime(end.milliseconds_since(start) / 1e3 / kRounds);
  }
  if (places.to_host()[last] != units_before_last) state.SkipWithError("the last packet's place is wrong");
}

enum class LentWay : std::uint8_t { gather, rows, window };

void lent(benchmark::State& state, LentWay way) {
  if (no_gpu(state)) return;
  const auto bytes = static_cast<std::uint32_t>(state.range(0));
  const auto stride = static_cast<std::uint32_t>(state.range(1));
  const bool back = state.range(2) != 0;
  constexpr std::size_t kMemory = std::size_t{64} << 20;
  const auto in_batch =
      static_cast<std::uint32_t>(std::min<std::size_t>(kBatchPackets, kBatchBytes / aligned_frame(bytes)));
  const std::uint32_t batches = static_cast<std::uint32_t>(kMemory / stride) / in_batch;
  gpu::PinnedBuffer<std::uint8_t> host(kMemory + stride);
  gpu::DeviceBuffer<std::uint8_t> device(std::size_t{in_batch} * std::max(stride, 2048U));
  std::vector<kernels::IndexEntry> entries;
  std::vector<std::uint32_t> places;
  for (std::uint32_t i = 0; i < batches * in_batch; ++i) {
    entries.push_back({i * stride, bytes, bytes, 0, LinkType::ethernet, 0});
    places.push_back(i % in_batch * static_cast<std::uint32_t>(aligned_frame(bytes)));
  }
  gpu::DeviceBuffer<kernels::IndexEntry> index{std::span<const kernels::IndexEntry>(entries)};
  gpu::DeviceBuffer<std::uint32_t> device_places{std::span<const std::uint32_t>(places)};
  kernels::Sources sources{};
  sources.memory[0] = host.data();
  const bool headers = bytes <= kHeaderBytes;
  kernels::Placement placement;
  placement.kind = headers ? kernels::Placement::Kind::lent_headers : kernels::Placement::Kind::lent;
  placement.places = device_places.data();
  const gpu::Stream streams[3];
  const gpu::Stream returns;
  gpu::PinnedBuffer<std::uint8_t> returned(kBatchBytes);
  gpu::DeviceBuffer<std::uint8_t> to_return(kBatchBytes);
  const auto bring = [&](std::uint32_t batch, const gpu::Stream& stream) {
    const std::size_t from = std::size_t{batch} * in_batch * stride;
    if (way == LentWay::window)
      return gpu::copy_async(device.data(), host.data() + from, std::size_t{in_batch} * stride, stream);
    if (way == LentWay::rows)
      return gpu::copy_rows_async(device.data(), host.data() + from, in_batch, aligned_frame(bytes), stride, stream);
    const kernels::IndexEntry* const of_batch = index.data() + std::size_t{batch} * in_batch;
    return headers ? gpu::launch_threads(kernels::gather_lent<kernels::kHeaderGroup>,
                                         std::size_t{in_batch} * kernels::kHeaderGroup, stream, sources, of_batch,
                                         device.data(), placement, in_batch)
                   : gpu::launch_threads(kernels::gather_lent<kernels::kLentGroup>,
                                         std::size_t{in_batch} * kernels::kLentGroup, stream, sources, of_batch,
                                         device.data(), placement, in_batch);
  };
  const gpu::Event ends[3];
  for (auto _ : state) {
    const auto start = Clock::now();
    bool good = true;
    for (std::uint32_t b = 0; good && b < batches; ++b) {
      good = bring(b, streams[b % 3]) &&
             (!back || gpu::copy_async(returned.data(), to_return.data(),
                                       std::min<std::size_t>(kBatchBytes, in_batch * aligned_frame(bytes)), returns));
    }
    for (int i = 0; good && i < 3; ++i) good = ends[i].record(streams[i]);
    for (const gpu::Event& end : ends) {
      while (good && end.progress() == gpu::Progress::kRunning) continue;
    }
    state.SetIterationTime(seconds_since(start));
    returns.wait();
    if (!good) return state.SkipWithError("the device refused a batch");
  }
  const double frames = static_cast<double>(state.iterations()) * batches * in_batch;
  state.counters["Mpps"] = benchmark::Counter(frames / 1e6, benchmark::Counter::kIsRate);
  state.counters["GBps"] = benchmark::Counter(frames * bytes / 1e9, benchmark::Counter::kIsRate);
}

void add_all() {
  for (const auto& [crossing, name] :
       {std::pair{Crossing::copy, "copy"}, std::pair{Crossing::zero_copy, "zero_copy"}}) {
    for (const bool whole : {true, false}) {
      const std::string title = std::string("lane/") + name + (whole ? "/whole" : "/headers");
      auto* const bench = benchmark::RegisterBenchmark(
          title.c_str(), [crossing = crossing, whole](benchmark::State& state) { lane(state, crossing, whole); });
      bench->UseManualTime()->Unit(benchmark::kMicrosecond)->ArgName("packets");
      for (const std::int64_t packets : {1, 8, 32, 64, 128, 256, 512, 1024, 2048}) bench->Arg(packets);
    }
  }
  for (const auto& [way, name] :
       {std::pair{LentWay::gather, "lent/gather"}, {LentWay::rows, "lent/rows"}, {LentWay::window, "lent/window"}}) {
    auto* const bench = benchmark::RegisterBenchmark(name, [way = way](benchmark::State& state) { lent(state, way); });
    bench->UseManualTime()->Unit(benchmark::kMicrosecond)->ArgNames({"bytes", "stride", "back"});
    for (const std::int64_t bytes : {96, 256, 512, 1536}) {
      for (const std::int64_t stride : {1600, 1664, 2048}) {
        for (const std::int64_t back : {0, 1}) bench->Args({bytes, stride, back});
      }
    }
  }
  auto* const packing = benchmark::RegisterBenchmark("pack", pack);
  packing->UseManualTime()->Unit(benchmark::kMicrosecond)->ArgName("packets");
  for (const std::int64_t packets : {2048, 16384, 262144}) packing->Arg(packets);
  benchmark::RegisterBenchmark("kernels/launched", launched)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond)
      ->ArgName("kernels")
      ->Arg(1)
      ->Arg(7);
  benchmark::RegisterBenchmark("kernels/graph", replayed)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond)
      ->ArgNames({"kernels", "new_arguments"})
      ->Args({1, 0})
      ->Args({7, 0})
      ->Args({7, 1});
}

}  // namespace
}  // namespace penstock::ring

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  penstock::ring::add_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
