// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Longest-prefix-match lookups and builds on one core, compared with DPDK's rte_fib and rte_fib6 (AVX-512): same
// tables, same addresses, 4-byte next hops, large pages on both sides. Results are written to one buffer per call, as
// in a batch, so that DPDK's wider results (8 bytes) cost no additional memory traffic. The tables are the corpus's
// full BGP tables or, without the corpus, synthetic tables with the same distribution of prefix lengths; the label says
// which. Addresses, host memory to host memory:
//
//   routes   a random route, then a random address in it     misses the caches
//   uniform  random over the address space
//   skewed   4,096 destinations of the first kind            fits the caches

#include <benchmark/benchmark.h>

#include <array>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "nf/router/fib.h"
#include "nf/router/lpm_corpus.h"
#include "nf/router/lpm_oracle.h"
#ifdef PENSTOCK_HAS_DPDK
#include "bench/dpdk/dpdk.h"
#include "nf/router/rte_fib_peer.h"
#endif

namespace penstock::router {
namespace {

constexpr std::size_t kAddresses = std::size_t{1} << 20;
constexpr std::size_t kBulk = 256;  // addresses per call, as in a batch

struct LengthShare {
  unsigned length;
  unsigned routes;
};
// The numbers of prefixes of each length in the full tables of 2025, in hundreds, without lengths with fewer than
// 1,000.
constexpr LengthShare kShares4[] = {{14, 12},  {15, 21},  {16, 135},  {17, 82},  {18, 138}, {19, 249},
                                    {20, 426}, {21, 508}, {22, 1086}, {23, 965}, {24, 5377}};
constexpr LengthShare kShares6[] = {{29, 44},  {32, 225}, {33, 29}, {34, 26},  {35, 10}, {36, 60}, {38, 16}, {39, 14},
                                    {40, 134}, {42, 23},  {43, 10}, {44, 144}, {45, 16}, {46, 30}, {47, 32}, {48, 755}};

Ipv4Address random_address(std::mt19937_64& random, Ipv4Address) { return {static_cast<std::uint32_t>(random())}; }
Ipv6Address random_address(std::mt19937_64& random, const Ipv6Address&) {
  return {std::uint64_t{1} << 61 | random() >> 3, random()};
}
Ipv4Address random_in(std::mt19937_64& random, const Ipv4Prefix& prefix) {
  return {prefix.address.bits | (static_cast<std::uint32_t>(random()) & ~ipv4_mask(prefix.length))};
}
Ipv6Address random_in(std::mt19937_64& random, const Ipv6Prefix& prefix) {
  const Ipv6Address mask = ipv6_mask(prefix.length);
  return {prefix.address.high | (random() & ~mask.high), prefix.address.low | (random() & ~mask.low)};
}

template <typename Route>
struct Workload {
  using Prefix = decltype(Route::prefix);
  using Address = decltype(Prefix::address);

  std::string table;
  std::vector<Route> routes;
  std::array<std::vector<Address>, 3> addresses;  // routes, uniform, skewed

  Workload(std::vector<Route> real, std::span<const LengthShare> shares)
      : table("full BGP table"), routes(std::move(real)) {
    std::mt19937_64 random(1);
    if (routes.empty()) {
      table = "synthetic table";
      std::set<Prefix> seen;
      std::vector<Prefix> blocks;  // registries' allocations, which contain the longer prefixes
      constexpr auto kBits = static_cast<std::uint8_t>(sizeof(Address) * 8);
      constexpr unsigned kBlockBits = kBits == 32 ? 16 : 32;
      for (const auto& [length, hundreds] : shares) {
        for (unsigned i = 0; i < hundreds * 100; ++i) {
          const Address address = length <= kBlockBits ? random_address(random, Address{})
                                                       : random_in(random, blocks[random() % blocks.size()]);
          const Prefix prefix = truncated(Prefix{address, kBits}, length);
          if (seen.insert(prefix).second && length <= kBlockBits) blocks.push_back(prefix);
        }
      }
      for (const Prefix& prefix : seen) routes.push_back({prefix, static_cast<std::uint32_t>(routes.size())});
    }
    for (std::size_t i = 0; i < kAddresses; ++i) {
      addresses[0].push_back(random_in(random, routes[random() % routes.size()].prefix));
      addresses[1].push_back(random_address(random, Address{}));
      addresses[2].push_back(addresses[0][i < 4096 ? i : random() % 4096]);
    }
  }
};

const Workload<Route4>& workload4() {
  static const Workload<Route4> workload(corpus_routes4(), kShares4);
  return workload;
}
const Workload<Route6>& workload6() {
  static const Workload<Route6> workload(corpus_routes6(), kShares6);
  return workload;
}

constexpr const char* kKinds[] = {"routes", "uniform", "skewed"};

/// `lookup(first, count)` looks up that part of the workload's addresses.
template <typename Lookup>
void run_lookups(benchmark::State& state, const std::string& table, std::size_t step, Lookup lookup) {
  for (auto _ : state) {
    for (std::size_t i = 0; i < kAddresses; i += step) lookup(i, step);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kAddresses));
  state.SetLabel(table);
}

void add(const std::string& name, std::function<void(benchmark::State&)> run) {
  benchmark::RegisterBenchmark(name.c_str(), std::move(run))->Unit(benchmark::kMillisecond);
}

template <typename Route, typename Table>
void add_ours(const std::string& family, const std::string& engine, const Workload<Route>& work, const Table& table) {
  for (std::size_t kind = 0; kind < 3; ++kind) {
    const auto name = [&](const char* call) { return family + "/" + kKinds[kind] + "/" + call + "/" + engine; };
    const auto& addresses = work.addresses[kind];
    add(name("bulk"), [&](benchmark::State& state) {
      std::array<std::uint32_t, kBulk> values;
      run_lookups(state, work.table, kBulk, [&](std::size_t first, std::size_t count) {
        table.lookup_bulk(std::span(addresses).subspan(first, count), values);
        benchmark::DoNotOptimize(values.data());
      });
      state.counters["MB"] = static_cast<double>(table.memory_bytes()) / 1e6;
    });
    add(name("single"), [&](benchmark::State& state) {
      std::array<std::uint32_t, kBulk> values;
      benchmark::DoNotOptimize(values.data());  // so that the compiler keeps the writes
      run_lookups(state, work.table, 1,
                  [&](std::size_t i, std::size_t) { values[i % kBulk] = table.lookup(addresses[i]); });
    });
  }
}

template <typename Route, typename Build>
void add_build(const std::string& name, const Workload<Route>& work, Build build) {
  add(name, [&work, build](benchmark::State& state) {
    for (auto _ : state) {
      auto table = build(work.routes);
      benchmark::DoNotOptimize(&table);
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) *
                            static_cast<std::int64_t>(work.routes.size()));
    state.SetLabel(work.table);
  });
}

#ifdef PENSTOCK_HAS_DPDK
Ipv4Address wire_address(Ipv4Address address) { return address; }  // rte_fib uses host byte order
RteFib6::Address wire_address(const Ipv6Address& address) { return RteFib6::wire(address); }

template <typename Route, typename Peer>
void add_peer(const std::string& family, const std::string& engine, const Workload<Route>& work, const Peer& peer) {
  for (std::size_t kind = 0; kind < 3; ++kind) {
    add(family + "/" + kKinds[kind] + "/bulk/" + engine, [&work, &peer, kind](benchmark::State& state) {
      std::vector<decltype(wire_address(work.addresses[kind][0]))> addresses;
      for (const auto& address : work.addresses[kind]) addresses.push_back(wire_address(address));
      std::array<std::uint64_t, kBulk> values;
      run_lookups(state, work.table, kBulk, [&](std::size_t first, std::size_t count) {
        peer.lookup_bulk(std::span(addresses).subspan(first, count), values);
        benchmark::DoNotOptimize(values.data());
      });
    });
  }
}
#endif

}  // namespace
}  // namespace penstock::router

int main(int argc, char** argv) {
  using namespace penstock::router;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const auto& work4 = workload4();
  const auto& work6 = workload6();

#ifdef PENSTOCK_HAS_DPDK
  penstock::bench::start_dpdk(4096);
  const RteFib4 peer4(work4.routes);
  const RteFib6 peer6(work6.routes);
  add_peer("ipv4", "rte_fib", work4, peer4);
#endif
  const auto dir24 = *Fib4::build(Fib4Engine::kDir24, work4.routes);
  const auto trie4 = *Fib4::build(Fib4Engine::kTrie4, work4.routes);
  const auto trie1 = *Fib4::build(Fib4Engine::kTrie1, work4.routes);
  const auto trie6 = *Fib6::build(work6.routes);
  add_ours("ipv4", "dir24", work4, dir24);
  add_ours("ipv4", "trie4", work4, trie4);
  add_ours("ipv4", "trie1", work4, trie1);
#ifdef PENSTOCK_HAS_DPDK
  add_peer("ipv6", "rte_fib6", work6, peer6);
#endif
  add_ours("ipv6", "trie", work6, trie6);

  for (const auto engine : {Fib4Engine::kDir24, Fib4Engine::kTrie4, Fib4Engine::kTrie1}) {
    add_build("ipv4/build/" + std::string(to_string(engine)), work4,
              [engine](const auto& routes) { return Fib4::build(engine, routes); });
  }
  add_build("ipv6/build/trie", work6, [](const auto& routes) { return Fib6::build(routes); });
#ifdef PENSTOCK_HAS_DPDK
  add_build("ipv4/build/rte_fib", work4, [](const auto& routes) { return RteFib4(routes); });
  add_build("ipv6/build/rte_fib6", work6, [](const auto& routes) { return RteFib6(routes); });
#endif
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
