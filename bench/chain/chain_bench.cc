// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The chain firewall → router from port to port on one core, compared with the same two functions written by hand on
// DPDK's rte_acl and rte_fib. Measures whole runs of the real worker: poll, parse, both functions, send, all counters.
//
// Axes: source (memory: captures that are replayed; pcap: a file in the page cache; generator), frame size, rules,
// routes. Packets start in host memory (memory, generator) or in a file (pcap), and end at the null port or in a file
// (pcap).

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/chain_file.h"
#include "experiments/workload.h"
#include "run/run.h"
#ifdef PENSTOCK_HAS_DPDK
#include "bench/chain/dpdk_chain.h"
#include "bench/dpdk/dpdk.h"
#include "nf/firewall/rule_reader.h"
#endif

namespace penstock {
namespace {

using experiments::route_prefixes;
using experiments::routes_text;
using experiments::rules_text;
using experiments::Workplace;

constexpr std::uint32_t kFlows = 10'000;
constexpr std::uint32_t kPackets = 40'000;  // in the capture that is replayed

/// Holds rules, routes and captures.
Workplace& workplace() {
  static Workplace place;
  return place;
}

report::RunReport run_chain(const std::string& yaml) {
  static unsigned count = 0;
  const std::string file = workplace().put(fmt::format("chain{}.yaml", count++), yaml);
  auto loaded = config::load_chain(file, {});
  if (!loaded) throw std::runtime_error(to_string(loaded.error()));
  const std::atomic<bool> stop{false};
  auto result = run::run(loaded->chain, {}, stop);
  if (!result) throw std::runtime_error(to_string(result.error()));
  if (!result->errors.empty()) throw std::runtime_error(to_string(result->errors));
  return result->report;
}

/// A capture of generated packets for the routes; created once.
std::string capture_of(const std::string& size, std::size_t routes) {
  const std::string path = workplace().path(fmt::format("in-{}-{}.pcap", size, routes));
  if (!std::filesystem::exists(path)) {
    workplace().put("routes", routes_text(routes));
    run_chain(
        fmt::format("ports:\n  a: {{generator: {{size: {}, flows: {}, packets: {}, destinations: routes}}}}\n"
                    "  b: {{pcap: {{write: {}}}}}\nchain: []\n",
                    size, kFlows, kPackets, path));
  }
  return path;
}

std::string functions_yaml(std::size_t rules, std::size_t routes) {
  workplace().put("rules", rules_text(rules));
  workplace().put("routes", routes_text(routes));
  return "chain: [firewall: {rules: rules}, router: {routes: routes}]\n";
}

void report(benchmark::State& state, double packets, double bytes, double seconds) {
  state.SetItemsProcessed(static_cast<std::int64_t>(packets));
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
  state.counters["Mpps"] = packets / seconds / 1e6;
  state.counters["ns/packet"] = seconds * 1e9 / packets;
}

void run_bench(benchmark::State& state, const std::string& yaml) {
  double packets = 0;
  double bytes = 0;
  double seconds = 0;
  for (auto _ : state) {
    const auto result = run_chain(yaml);
    if (result.in.packets != result.forwarded.packets) return state.SkipWithError("packets were dropped");
    const double elapsed = result.elapsed_s();
    state.SetIterationTime(elapsed);
    packets += static_cast<double>(result.in.packets);
    bytes += static_cast<double>(result.in.bytes);
    seconds += elapsed;
  }
  report(state, packets, bytes, seconds);
}

void from_memory(benchmark::State& state, const std::string& size, std::size_t rules, std::size_t routes) {
  const std::string in = capture_of(size, routes);
  run_bench(state, fmt::format("ports:\n  lan: {{memory: {{read: {}, loop: 50}}}}\n  wan: {{null: {{}}}}\n", in) +
                       functions_yaml(rules, routes));
}

void from_generator(benchmark::State& state, const std::string& size, std::size_t rules, std::size_t routes) {
  run_bench(state,
            fmt::format("ports:\n  lan: {{generator: {{size: {}, flows: {}, packets: {}, destinations: routes}}}}\n"
                        "  wan: {{null: {{}}}}\n",
                        size, kFlows, kPackets * 50) +
                functions_yaml(rules, routes));
}

void from_pcap(benchmark::State& state, const std::string& size, std::size_t rules, std::size_t routes) {
  const std::string in = capture_of(size, routes);
  run_bench(state, fmt::format("ports:\n  lan: {{pcap: {{read: [{0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}]}}}}\n"
                               "  wan: {{pcap: {{write: {1}}}}}\n",
                               in, workplace().path("out.pcap")) +
                       functions_yaml(rules, routes));
}

/// The limit of a chain from memory: only copies its frames into batches and discards them.
void ports_alone(benchmark::State& state, const std::string& size, std::size_t routes) {
  run_bench(state, fmt::format("ports:\n  lan: {{memory: {{read: {}, loop: 50}}}}\n  wan: {{null: {{}}}}\nchain: []\n",
                               capture_of(size, routes)));
}

#ifdef PENSTOCK_HAS_DPDK
std::vector<std::vector<std::uint8_t>> frames_of(const std::string& capture) {
  // A classic pcap as our own port wrote it: a 24-byte header, then records.
  std::ifstream file(capture, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::vector<std::uint8_t>> frames;
  for (std::size_t at = 24; at + 16 <= bytes.size();) {
    std::uint32_t length = 0;
    std::memcpy(&length, bytes.data() + at + 8, 4);
    const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data()) + at + 16;
    frames.emplace_back(first, first + length);
    at += 16 + length;
  }
  return frames;
}

void by_hand_on_dpdk(benchmark::State& state, const std::string& size, std::size_t rules, std::size_t routes) {
  static const bool started = (bench::start_dpdk(1024), true);
  if (!started) return;
  const auto frames = frames_of(capture_of(size, routes));
  const auto ruleset = firewall::read_rules(rules_text(rules), "rules", {});
  std::vector<router::Route4> table;
  for (const Ipv4Prefix& prefix : route_prefixes(routes)) {
    table.push_back({prefix, static_cast<std::uint32_t>(table.size() % 250)});
  }
  bench::DpdkChain chain(ruleset->value, table);
  double bytes = 0;
  double packets = 0;
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    const auto counts = chain.run(frames);
    if (counts.dropped != 0) return state.SkipWithError("packets were dropped");
    packets += static_cast<double>(frames.size());
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  bytes = packets * static_cast<double>(frames.front().size());
  report(state, packets, bytes, elapsed.count());
}
#endif

void add_all() {
  const auto add = [](const std::string& name, auto function) {
    return benchmark::RegisterBenchmark(name.c_str(), function)->Unit(benchmark::kMillisecond);
  };
  for (const std::string size : {"64", "512", "1518"}) {
    const bool small = size == "64";
    for (const std::size_t rules : {std::size_t{100}, std::size_t{1000}}) {
      for (const std::size_t routes : {std::size_t{1000}, std::size_t{500000}}) {
        if (!small && (rules != 100 || routes != 500000)) continue;
        const std::string axes = fmt::format("/{}B/{}_rules/{}_routes", size, rules, routes);
        add("chain/memory" + axes, [=](auto& state) { from_memory(state, size, rules, routes); })->UseManualTime();
#ifdef PENSTOCK_HAS_DPDK
        add("peer/dpdk_by_hand" + axes, [=](auto& state) { by_hand_on_dpdk(state, size, rules, routes); });
#endif
      }
    }
    const std::string axes = fmt::format("/{}B/100_rules/500000_routes", size);
    add("chain/generator" + axes, [=](auto& state) { from_generator(state, size, 100, 500000); })->UseManualTime();
    add("chain/pcap_to_pcap" + axes, [=](auto& state) { from_pcap(state, size, 100, 500000); })->UseManualTime();
    add("limit/ports_alone/" + size + "B", [=](auto& state) { ports_alone(state, size, 500000); })->UseManualTime();
  }
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  penstock::add_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
