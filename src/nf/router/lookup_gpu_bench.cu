// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Longest prefix match on a GPU.
//
//   device/…      keys and values in device memory: the kernel alone, by CUDA events
//   end_to_end/…  keys in pinned host memory, values back there, over several streams: by the host's clock, with the
//                 limit that PCIe sets, measured in the same run
//
// The tables are the corpus's full BGP tables where it is there, else random ones of their size. The addresses:
//
//   routes   a random route, then a random address in it
//   uniform  random over the address space

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gpu/check.cuh"
#include "gpu/devices.h"
#include "gpu/memory.h"
#include "gpu/pcie.h"
#include "gpu/stream.h"
#include "nf/router/fib.h"
#include "nf/router/lpm_corpus.h"
#include "nf/router/multibit_core.h"

namespace penstock::router {
namespace {

constexpr std::size_t kKeys = std::size_t{1} << 24;
constexpr unsigned kThreads = 256;
constexpr unsigned kKeysPerThread = 4;  // as many loads are in flight

/// What a thread reads and writes at once: keys of 4 bytes in one load, longer ones in several.
template <typename Address>
struct alignas(16) Keys {
  Address of[kKeysPerThread];
};
struct alignas(16) Values {
  std::uint32_t of[kKeysPerThread];
};

/// `count` is in groups of kKeysPerThread.
template <typename View>
__global__ void __launch_bounds__(kThreads) look_up(View table, const Keys<typename View::Address>* __restrict__ keys,
                                                    Values* __restrict__ values, unsigned count) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const Keys<typename View::Address> mine = keys[i];
  Values found;
#pragma unroll
  for (unsigned k = 0; k < kKeysPerThread; ++k) found.of[k] = lookup(table, mine.of[k]);
  values[i] = found;
}

template <typename View>
void launch(const View& table, const typename View::Address* keys, std::uint32_t* values, std::size_t count,
            const gpu::Stream& stream) {
  const auto groups = static_cast<unsigned>(count / kKeysPerThread);
  look_up<<<(groups + kThreads - 1) / kThreads, kThreads, 0, stream.get()>>>(
      table, reinterpret_cast<const Keys<typename View::Address>*>(keys), reinterpret_cast<Values*>(values), groups);
}

Ipv4Address random_address(std::mt19937_64& random, Ipv4Address) { return {static_cast<std::uint32_t>(random())}; }
Ipv6Address random_address(std::mt19937_64& random, Ipv6Address) {
  return {std::uint64_t{1} << 61 | random() >> 3, random()};
}
Ipv4Address random_in(std::mt19937_64& random, const Ipv4Prefix& prefix) {
  return {prefix.address.bits | (static_cast<std::uint32_t>(random()) & ~ipv4_mask(prefix.length))};
}
Ipv6Address random_in(std::mt19937_64& random, const Ipv6Prefix& prefix) {
  const Ipv6Address mask = ipv6_mask(prefix.length);
  return {prefix.address.high | (random() & ~mask.high), prefix.address.low | (random() & ~mask.low)};
}

/// Where the corpus is absent: as many routes as it has, most of them /24, or /48.
template <typename Route>
std::vector<Route> or_random(std::vector<Route> routes, std::size_t count) {
  using Prefix = decltype(Route::prefix);
  using Address = decltype(Prefix::address);
  constexpr unsigned kBits = sizeof(Address) * 8;
  constexpr unsigned kLongest = kBits == 32 ? 24 : 48;
  std::mt19937_64 random(1);
  while (routes.size() < count) {
    const auto length = static_cast<unsigned>(kLongest - std::min<std::uint64_t>(random() % 9, random() % 9));
    const Prefix whole{random_address(random, Address{}), static_cast<std::uint8_t>(kBits)};
    routes.push_back({truncated(whole, length), static_cast<std::uint32_t>(random() % 70'000)});
  }
  return routes;
}

const std::vector<Route4>& routes4() {
  static const std::vector<Route4> routes = or_random(corpus_routes4(), 900'000);
  return routes;
}
const std::vector<Route6>& routes6() {
  static const std::vector<Route6> routes = or_random(corpus_routes6(), 160'000);
  return routes;
}

enum class Kind { routes, uniform };

/// Made once: a bench is called several times.
template <typename Route>
const auto& addresses_of(const std::vector<Route>& routes, Kind kind) {
  using Address = decltype(decltype(Route::prefix)::address);
  static std::map<Kind, std::vector<Address>> made;
  std::vector<Address>& addresses = made[kind];
  std::mt19937_64 random(2);
  while (addresses.size() < kKeys) {
    addresses.push_back(kind == Kind::uniform ? random_address(random, Address{})
                                              : random_in(random, routes[random() % routes.size()].prefix));
  }
  return addresses;
}

/// A table, its copy on the device, and the look-ups' right answers.
template <typename View>
struct OnDevice {
  using Table = MultibitTable<View>;

  explicit OnDevice(const std::vector<typename Table::Route>& routes)
      : table(std::move(*Table::build(routes))),
        root(std::span(table.view().root, View::kRootEntries)),
        nodes(std::span(table.view().nodes, table.view().node_entries)),
        view{root.data(), nodes.data(), table.view().node_entries} {}

  /// Empty where they are the host's.
  std::string mistake(std::span<const typename View::Address> keys, std::span<const std::uint32_t> values) const {
    for (std::size_t i = 0; i < keys.size(); i += 997) {
      if (values[i] != table.lookup(keys[i])) return "wrong value for " + to_string(keys[i]);
    }
    return "";
  }

  Table table;
  gpu::DeviceBuffer<std::uint32_t> root, nodes;
  View view;
};

template <typename View, typename Routes>
void device(benchmark::State& state, Kind kind, const Routes& routes) {
  static const OnDevice<View> device(routes);
  const auto& addresses = addresses_of(routes, kind);
  const gpu::DeviceBuffer<typename View::Address> keys{std::span<const typename View::Address>(addresses)};
  gpu::DeviceBuffer<std::uint32_t> values(kKeys);
  const gpu::Stream stream;
  const gpu::Event start(gpu::Event::Timing::kOn);
  const gpu::Event end(gpu::Event::Timing::kOn);
  for (auto _ : state) {
    if (!start.record(stream)) gpu::check_launch();
    launch(device.view, keys.data(), values.data(), kKeys, stream);
    if (!end.record(stream)) gpu::check_launch();
    gpu::check_launch();
    end.wait();
    state.SetIterationTime(end.milliseconds_since(start) * 1e-3);
  }
  const auto found = values.to_host();
  if (const std::string mistake = device.mistake(addresses, found); !mistake.empty()) {
    state.SkipWithError(mistake.c_str());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kKeys));
  state.counters["MB"] = static_cast<double>(device.table.memory_bytes()) / 1e6;
  state.counters["routes"] = static_cast<double>(routes.size());
}

/// Pieces of `piece` keys go round over the streams; each has its place in device memory.
template <typename View, typename Routes>
void end_to_end(benchmark::State& state, Kind kind, const Routes& routes) {
  using Address = typename View::Address;
  const auto streams = static_cast<std::size_t>(state.range(0));
  const std::size_t piece = static_cast<std::size_t>(state.range(1)) / sizeof(Address);
  static const OnDevice<View> device(routes);
  const auto& addresses = addresses_of(routes, kind);
  gpu::PinnedBuffer<Address> keys(kKeys);
  std::copy(addresses.begin(), addresses.end(), keys.data());
  gpu::PinnedBuffer<std::uint32_t> values(kKeys);
  struct Lane {
    explicit Lane(std::size_t size) : keys(size), values(size) {}
    gpu::Stream stream;
    gpu::DeviceBuffer<Address> keys;
    gpu::DeviceBuffer<std::uint32_t> values;
  };
  std::vector<std::unique_ptr<Lane>> lanes;
  for (std::size_t i = 0; i < streams; ++i) lanes.push_back(std::make_unique<Lane>(piece));
  static const gpu::PcieRates pcie = gpu::measure_pcie(gpu::current_device());
  bool sent = true;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t at = 0, n = 0; at < kKeys; at += piece, ++n) {
      Lane& lane = *lanes[n % streams];
      sent &= gpu::copy_async(lane.keys.data(), keys.data() + at, piece * sizeof(Address), lane.stream);
      launch(device.view, lane.keys.data(), lane.values.data(), piece, lane.stream);
      sent &= gpu::copy_async(values.data() + at, lane.values.data(), piece * sizeof(std::uint32_t), lane.stream);
    }
    for (const auto& lane : lanes) lane->stream.wait();
    state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  gpu::check_launch();
  std::string mistake = device.mistake(addresses, values.span());
  if (!sent) mistake = "a copy was refused";
  if (!mistake.empty()) state.SkipWithError(mistake.c_str());
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kKeys));
  // The direction that carries more, at the rate that each has while both run.
  const double limit = pcie.both_each_way * 1e9 / static_cast<double>(std::max(sizeof(Address), sizeof(std::uint32_t)));
  state.counters["pcie_each_way_GB/s"] = pcie.both_each_way;
  state.counters["limit"] = limit;
  state.counters["of_limit"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * static_cast<double>(kKeys) / limit, benchmark::Counter::kIsRate);
}

/// Runs where there is a GPU; elsewhere it says why it cannot.
void add(const std::string& name, std::function<void(benchmark::State&)> run, bool rounds_of_streams = false) {
  auto* const bench = benchmark::RegisterBenchmark(name.c_str(), [run = std::move(run)](benchmark::State& state) {
    const gpu::DeviceList devices = gpu::list_devices();
    if (devices.availability != gpu::Availability::kUsable) return state.SkipWithError(devices.reason.c_str());
    run(state);
  });
  bench->UseManualTime()->Unit(benchmark::kMillisecond);
  if (!rounds_of_streams) return;
  bench->ArgNames({"streams", "bytes"});
  for (const std::int64_t streams : {2, 4, 8}) {
    for (const std::int64_t bytes : {1 << 20, 4 << 20}) bench->Args({streams, bytes});
  }
}

}  // namespace
}  // namespace penstock::router

int main(int argc, char** argv) {
  using namespace penstock::router;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const auto& [kind, name] : {std::pair{Kind::routes, "routes"}, std::pair{Kind::uniform, "uniform"}}) {
    const auto title = [name = std::string(name)](const std::string& what, const std::string& engine) {
      return what + "/" + name + "/" + engine;
    };
    add(title("device", "dir24"), [kind = kind](benchmark::State& s) { device<Dir24View>(s, kind, routes4()); });
    add(title("device", "trie4"), [kind = kind](benchmark::State& s) { device<Trie4View>(s, kind, routes4()); });
    add(title("device", "trie1"), [kind = kind](benchmark::State& s) { device<Trie1View>(s, kind, routes4()); });
    add(title("device", "trie6"), [kind = kind](benchmark::State& s) { device<Trie6View>(s, kind, routes6()); });
  }
  add(
      "end_to_end/routes/dir24", [](benchmark::State& s) { end_to_end<Dir24View>(s, Kind::routes, routes4()); }, true);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
