// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Classification by all engines and by DPDK's rte_acl, in one run. The 4,096 keys are in host memory and stay in the
// second-level cache; only their classification is timed. `stage` is the whole CPU stage: from a parsed packet of 64
// bytes to its verdict and counters.
//
// Axes: the rules (of a synthetic gateway, or a ClassBench set if the corpus is there), the engine, and whether the
// first or the last match decides.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "nf/firewall/bench_workload.h"
#include "nf/firewall/corpus_for_test.h"
#include "nf/firewall/firewall.h"
#include "packet/batch.h"
#ifdef PENSTOCK_HAS_DPDK
#include "bench/dpdk/dpdk.h"
#include "nf/firewall/rte_acl_peer.h"
#endif

namespace penstock::firewall {
namespace {

constexpr std::size_t kKeys = 4096;
constexpr std::pair<classify::Engine, const char*> kEngines[] = {
    {classify::Engine::linear, "linear"}, {classify::Engine::bitvector, "bitvector"}, {classify::Engine::rfc, "rfc"}};

void count(benchmark::State& state, const Workload& work, double bytes) {
  const auto keys = static_cast<double>(state.iterations()) * static_cast<double>(work.keys.size());
  state.SetItemsProcessed(static_cast<std::int64_t>(keys));
  state.counters["ns/packet"] =
      benchmark::Counter(keys * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["rules"] = static_cast<double>(work.rules.rules.size());
  if (bytes > 0) state.counters["bytes"] = benchmark::Counter(bytes, {}, benchmark::Counter::kIs1024);
}

void run_engine(benchmark::State& state, const Workload& work, const classify::Ruleset& rules,
                classify::Engine engine) {
  const auto classifier = classify::make_classifier(engine, rules);
  if (!classifier) return state.SkipWithError(to_string(classifier.error()).c_str());
  std::vector<std::uint32_t> entries(work.keys.size());
  for (auto _ : state) {
    (*classifier)->classify(work.keys, entries.data());
    benchmark::DoNotOptimize(entries.data());
  }
  count(state, work, static_cast<double>((*classifier)->memory_bytes()));
}

/// The keys as 64-byte TCP and UDP packets in one batch, parsed.
void run_stage(benchmark::State& state, const Workload& work) {
  const auto firewall = *Firewall::build(work.rules, classify::Engine::bitvector);
  const auto stage = firewall->make_cpu_stage();
  constexpr std::size_t kFrame = 64, kTogether = 64;
  std::vector<std::uint8_t> bytes(kFrame * work.keys.size());
  std::vector<PacketDescriptor> descriptors(work.keys.size());
  std::vector<PacketView> views;
  for (std::size_t i = 0; i < work.keys.size(); ++i) {
    const classify::Key& key = work.keys[i];
    PacketDescriptor& packet = descriptors[i];
    packet.length = packet.wire_length = kFrame - 4;
    packet.layout.network = NetworkLayer::ipv4;
    packet.layout.network_offset = 14;
    packet.layout.transport_offset = 34;
    packet.layout.transport = static_cast<std::uint8_t>(key.protocol());
    packet.layout.flags = PacketLayout::kNetworkHeader | PacketLayout::kTransportHeader;
    const PacketView view{bytes.data() + i * kFrame, &packet};
    view.ipv4().source.set(static_cast<std::uint32_t>(key.source.low));
    view.ipv4().destination.set(static_cast<std::uint32_t>(key.destination.low));
    view.udp().source_port.set(static_cast<std::uint16_t>(key.source_port));
    view.udp().destination_port.set(static_cast<std::uint16_t>(key.destination_port));
    views.push_back(view);
  }
  const std::span<PacketView> all(views);
  for (auto _ : state) {
    for (std::size_t i = 0; i < all.size(); i += kTogether) {
      stage->process(all.subspan(i, std::min(kTogether, all.size() - i)));
    }
  }
  count(state, work, 0);
}

#ifdef PENSTOCK_HAS_DPDK
void run_rte_acl(benchmark::State& state, const Workload& work) {
  static const bool started = (bench::start_dpdk(1024), true);
  static_cast<void>(started);
  const RteAcl acl(work.rules);
  std::vector<RteAcl::Tuple> tuples;
  for (const classify::Key& key : work.keys) tuples.push_back(RteAcl::wire(key));
  std::vector<const std::uint8_t*> pointers;
  for (const auto& one : tuples) pointers.push_back(reinterpret_cast<const std::uint8_t*>(&one));
  std::vector<std::uint32_t> results(tuples.size());
  for (auto _ : state) {
    acl.classify(pointers, results.data());
    benchmark::DoNotOptimize(results.data());
  }
  state.SetLabel(acl.algorithm());
  count(state, work, 0);
}
#endif

void add(const std::string& name, Workload workload) {
  static std::vector<std::unique_ptr<Workload>> kept;
  kept.push_back(std::make_unique<Workload>(std::move(workload)));
  const Workload& work = *kept.back();
  const auto bench = [&](const std::string& what, auto run) {
    benchmark::RegisterBenchmark((name + "/" + what).c_str(), [&work, run](benchmark::State& s) { run(s, work); });
  };
  for (const auto& [engine, engine_name] : kEngines) {
    const classify::Engine used = engine;
    bench(engine_name, [used](benchmark::State& s, const Workload& w) { run_engine(s, w, w.rules, used); });
    // Linear search is slower if the rules that most packets match are at the end of its way.
    bench(std::string(engine_name) + "/last", [used](benchmark::State& s, const Workload& w) {
      classify::Ruleset rules = w.rules;
      let_last_decide(rules);
      run_engine(s, w, rules, used);
    });
  }
  if (work.rules.entries.front().family == NetworkLayer::ipv4) {
    bench("stage", run_stage);
#ifdef PENSTOCK_HAS_DPDK
    if (work.rules.rules.size() < 20000) bench("rte_acl", run_rte_acl);
#endif
  }
}

}  // namespace
}  // namespace penstock::firewall

int main(int argc, char** argv) {
  using namespace penstock::firewall;
  benchmark::Initialize(&argc, argv);
  for (const std::uint32_t rules : {16U, 128U, 1000U, 10000U})
    add("gateway_" + std::to_string(rules), gateway(rules, kKeys));
  for (const char* name : {"acl_1k", "fw_1k", "ipc_1k", "acl_10k", "fw_10k", "ipc_10k"}) {
    if (const auto set = corpus_set(name))
      add(name, classbench(*set, kKeys));
    else
      std::fprintf(stderr, "%s: not in the corpus, left out\n", name);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
