// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rates of the device engines. Axes: engine (`gpu`, `gpu-generated`), filters (`ports`: "tcp port N"; `distinct`: no
// two with the same code; `mixed`: of many kinds), and their number.
//
//   kernel/…   packets and bitmaps are in device memory, 1,048,576 packets of 60 to 128 bytes
//   host/…     the same packets from host memory to bitmaps in host memory, through HostBatches, whose copies to pinned
//              memory one core makes. `up_GBps`, `down_GBps`: what crosses PCIe
//   compile/…  generating code and compiling it with NVRTC, on one core. `cubin_KiB`: machine code
//
// `Mpps`: million packets per second. `Geps`: billion filters evaluated per second, the product of packets and filters.

#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "gpu/devices.h"
#include "gpu/memory.h"
#include "gpu/nvrtc.h"
#include "gpu/stream.h"
#include "nf/filter/code/device_matcher.h"
#include "nf/filter/code/host_batches.h"
#include "nf/filter/code/machine_code.h"
#include "nf/filter/code/random_programs_for_test.h"

namespace penstock::filter {
namespace {

constexpr std::size_t kPackets = std::size_t{1} << 20;

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

enum class Filters { ports, distinct, mixed };

std::vector<Program> make_filters(Filters kind, std::size_t count) {
  switch (kind) {
    case Filters::ports: return testing::port_filters(count);
    case Filters::distinct: return testing::distinct_filters(count);
    default: return testing::mixed_filters(count);
  }
}

/// The packets, one after the other, each at a multiple of 4.
struct Packets {
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint32_t> records;  // offset, length, wire length
  std::vector<PacketBytes> views;
};

const Packets& packets() {
  static const Packets made = [] {
    Packets all;
    testing::RandomPrograms draw(1);
    for (std::size_t i = 0; i < kPackets; ++i) {
      auto frame = testing::random_frame(draw);
      if (frame.size() < 60) frame.resize(60);
      const auto length = static_cast<std::uint32_t>(std::min<std::size_t>(frame.size(), 128));
      all.records.insert(all.records.end(), {static_cast<std::uint32_t>(all.bytes.size()), length, length});
      all.bytes.insert(all.bytes.end(), frame.begin(), frame.begin() + length);
      all.bytes.resize((all.bytes.size() + 3) / 4 * 4);
    }
    for (std::size_t i = 0; i < kPackets; ++i) {
      all.views.push_back({all.bytes.data() + all.records[3 * i], all.records[3 * i + 1], all.records[3 * i + 2]});
    }
    return all;
  }();
  return made;
}

std::unique_ptr<DeviceMatcher> matcher(benchmark::State& state, DeviceEngine engine, Filters filters) {
  static const gpu::DeviceList devices = gpu::list_devices();
  if (devices.availability != gpu::Availability::kUsable) {
    state.SkipWithError(devices.reason.c_str());
    return nullptr;
  }
  auto made = make_device_matcher(engine, make_filters(filters, static_cast<std::size_t>(state.range(0))));
  if (made) return std::move(*made);
  state.SkipWithError(to_string(made.error()).c_str());
  return nullptr;
}

void count_rates(benchmark::State& state, double seconds) {
  const double rate = static_cast<double>(kPackets) * static_cast<double>(state.iterations()) / seconds;
  state.counters["Mpps"] = rate / 1e6;
  state.counters["Geps"] = rate * static_cast<double>(state.range(0)) / 1e9;
}

void kernel(benchmark::State& state, DeviceEngine engine, Filters filters) {
  const auto programs = matcher(state, engine, filters);
  if (programs == nullptr) return;
  const gpu::DeviceBuffer<std::uint8_t> frames{std::span<const std::uint8_t>(packets().bytes)};
  const gpu::DeviceBuffer<std::uint32_t> records{std::span<const std::uint32_t>(packets().records)};
  gpu::DeviceBuffer<std::uint32_t> words(kPackets * programs->words());
  MatchBatch batch{};
  batch.packets = {
      frames.data(), reinterpret_cast<const std::uint8_t*>(records.data()), kPackets, 12, 0, 4, 8, kAllAlive,
      kUnbounded};
  batch.words = words.data();
  batch.row_words = programs->words();
  const gpu::Stream stream;
  const gpu::Event start(gpu::Event::Timing::kOn);
  const gpu::Event end(gpu::Event::Timing::kOn);
  bool good = programs->match(batch, stream);
  stream.wait();
  double seconds = 0;
  for (auto _ : state) {
    good = good && start.record(stream) && programs->match(batch, stream) && end.record(stream);
    if (!good) return state.SkipWithError("the driver refuses the launch");
    end.wait();
    const double took = end.milliseconds_since(start) / 1e3;
    state.SetIterationTime(took);
    seconds += took;
  }
  count_rates(state, seconds);
}

void host(benchmark::State& state, DeviceEngine engine, Filters filters) {
  const auto programs = matcher(state, engine, filters);
  if (programs == nullptr) return;
  const std::vector<PacketBytes>& all = packets().views;
  HostBatches batches(*programs, MatchOutput::bitmap, {std::size_t{4} << 20, 32768, 4});
  std::uint64_t matches = 0;
  double seconds = 0;
  const auto take = [&] {
    const HostBatches::Results results = batches.take();
    matches += results.packets == 0 ? 0 : results.words[0];
  };
  for (auto _ : state) {
    const auto start = Clock::now();
    for (std::size_t sent = 0; sent < all.size();) {
      if (batches.full()) take();
      sent += batches.submit(std::span(all).subspan(sent));
    }
    while (!batches.empty()) take();
    const double took = seconds_since(start);
    state.SetIterationTime(took);
    seconds += took;
  }
  benchmark::DoNotOptimize(matches);
  count_rates(state, seconds);
  state.counters["up_GBps"] = static_cast<double>(batches.bytes_up()) / seconds / 1e9;
  state.counters["down_GBps"] = static_cast<double>(batches.bytes_down()) / seconds / 1e9;
}

void compile(benchmark::State& state, Filters filters) {
  if (!gpu::nvrtc_status().available) return state.SkipWithError(gpu::nvrtc_status().reason.c_str());
  const auto programs = make_filters(filters, static_cast<std::size_t>(state.range(0)));
  std::size_t bytes = 0;
  for (auto _ : state) {
    MachineCode code(programs, {});
    const auto compiled = code.for_devices(9, 0);
    if (!compiled) return state.SkipWithError(to_string(compiled.error()).c_str());
    bytes = compiled->size();
  }
  state.counters["cubin_KiB"] = static_cast<double>(bytes) / 1024;
}

constexpr const char* kNames[] = {"ports", "distinct", "mixed"};

[[maybe_unused]] const bool registered = [] {
  for (const Filters filters : {Filters::ports, Filters::distinct, Filters::mixed}) {
    const std::string name = kNames[static_cast<int>(filters)];
    for (const DeviceEngine engine : {DeviceEngine::interpreter, DeviceEngine::generated}) {
      const std::string axes = "/" + std::string(to_string(engine)) + "/" + name;
      for (const int count : {1, 4, 16, 64, 256, 1024}) {
        benchmark::RegisterBenchmark(("kernel" + axes).c_str(), kernel, engine, filters)
            ->Arg(count)
            ->ArgName("filters")
            ->UseManualTime()
            ->MinTime(0.1);
        benchmark::RegisterBenchmark(("host" + axes).c_str(), host, engine, filters)
            ->Arg(count)
            ->ArgName("filters")
            ->UseManualTime()
            ->MinTime(0.2);
      }
    }
    for (const int count : {1, 1024}) {
      benchmark::RegisterBenchmark(("compile/" + name).c_str(), compile, filters)
          ->Arg(count)
          ->ArgName("filters")
          ->Unit(benchmark::kMillisecond)
          ->Iterations(1);
    }
  }
  return true;
}();

}  // namespace
}  // namespace penstock::filter

BENCHMARK_MAIN();
