// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Classification on a GPU: keys in device memory, the deciding entries back there; the kernel alone, by CUDA events. No
// packets are touched and nothing crosses PCIe. Keys are drawn from the rules' trace, 4,194,304 of them in random
// order.
//
// Axes: the rules (a synthetic gateway's, or a ClassBench set of the corpus where it is there) and the engine.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gpu/check.cuh"
#include "gpu/devices.h"
#include "gpu/memory.h"
#include "gpu/stream.h"
#include "nf/firewall/bench_workload.h"
#include "nf/firewall/device_tables.h"

namespace penstock::firewall {
namespace {

constexpr std::size_t kKeys = std::size_t{1} << 22;
constexpr unsigned kThreads = 256;

template <typename View>
__global__ void __launch_bounds__(kThreads)
    classify(View table, const Key* __restrict__ keys, std::uint32_t* __restrict__ entries, unsigned count) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  if (i < count) entries[i] = deciding_entry(table, keys[i]);
}

/// What a bench needs, made once: it is called several times.
struct Prepared {
  Prepared(const Workload& work, std::unique_ptr<Classifier> made, std::vector<Key> drawn)
      : classifier(std::move(made)),
        tables(work.rules, *classifier),
        asked(std::move(drawn)),
        keys(std::span<const Key>(asked)) {}

  std::unique_ptr<Classifier> classifier;
  DeviceTables tables;
  std::vector<Key> asked;
  gpu::DeviceBuffer<Key> keys;
};

std::vector<Key> drawn_from(const std::vector<Key>& trace) {
  std::mt19937 random(3);
  std::vector<Key> keys(kKeys);
  for (Key& key : keys) key = trace[random() % trace.size()];
  return keys;
}

void run(benchmark::State& state, const Workload& work, Engine engine) {
  const gpu::DeviceList devices = gpu::list_devices();
  if (devices.availability != gpu::Availability::kUsable) return state.SkipWithError(devices.reason.c_str());
  static std::map<std::pair<const Workload*, Engine>, std::unique_ptr<const Prepared>> made;
  auto& prepared = made[{&work, engine}];
  if (prepared == nullptr) {
    auto classifier = make_classifier(engine, work.rules);
    if (!classifier) return state.SkipWithError(to_string(classifier.error()).c_str());
    prepared = std::make_unique<const Prepared>(work, std::move(*classifier), drawn_from(work.keys));
  }
  gpu::DeviceBuffer<std::uint32_t> entries(kKeys);
  const gpu::Stream stream;
  const gpu::Event start(gpu::Event::Timing::kOn);
  const gpu::Event end(gpu::Event::Timing::kOn);
  for (auto _ : state) {
    if (!start.record(stream)) gpu::check_launch();
    std::visit(
        [&](const auto& view) {
          classify<<<kKeys / kThreads, kThreads, 0, stream.get()>>>(view, prepared->keys.data(), entries.data(), kKeys);
        },
        prepared->tables.engine());
    if (!end.record(stream)) gpu::check_launch();
    gpu::check_launch();
    end.wait();
    state.SetIterationTime(end.milliseconds_since(start) * 1e-3);
  }
  const std::vector<std::uint32_t> found = entries.to_host();
  std::vector<std::uint32_t> expected(4096);
  prepared->classifier->classify(std::span<const Key>(prepared->asked).first(expected.size()), expected.data());
  if (!std::equal(expected.begin(), expected.end(), found.begin())) state.SkipWithError("wrong entries");
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kKeys));
  state.counters["rules"] = static_cast<double>(work.rules.rules.size());
  state.counters["different_keys"] = static_cast<double>(work.keys.size());
  state.counters["bytes"] =
      benchmark::Counter(static_cast<double>(prepared->classifier->memory_bytes()), {}, benchmark::Counter::kIs1024);
}

void add(const std::string& name, Workload workload) {
  static std::vector<std::unique_ptr<Workload>> kept;
  kept.push_back(std::make_unique<Workload>(std::move(workload)));
  const Workload& work = *kept.back();
  const auto bench = [&](const char* what, Engine engine) {
    benchmark::RegisterBenchmark((name + "/" + what).c_str(),
                                 [&work, engine](benchmark::State& state) { run(state, work, engine); })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  };
  bench("bitvector", Engine::bitvector);
  if (work.rules.rules.size() < 2000) bench("linear", Engine::linear);
}

}  // namespace
}  // namespace penstock::firewall

int main(int argc, char** argv) {
  using namespace penstock::firewall;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const std::uint32_t rules : {16U, 128U, 1000U, 10000U}) {
    add("gateway_" + std::to_string(rules), gateway(rules, 65536));
  }
  for (const char* name : {"acl_1k", "fw_1k", "ipc_1k", "acl_10k", "fw_10k", "ipc_10k"}) {
    if (const auto set = corpus_set(name))
      add(name, classbench(*set, std::numeric_limits<std::size_t>::max()));
    else
      std::fprintf(stderr, "%s: not in the corpus, left out\n", name);
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
