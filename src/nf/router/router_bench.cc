// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The router's CPU twin on one core, and the time to load its tables from text. 32,768 parsed 64-byte UDP packets in
// host memory (4 MiB with descriptors), each to a random address of a random route, are processed repeatedly, 128 at a
// time. This measures checks, lookup, hop limit, checksum, MACs and verdict, without I/O and parsing. The table is the
// corpus's full BGP table or, without the corpus, a synthetic one of the same size.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gpu/devices.h"
#include "nf/router/lpm_corpus.h"
#include "nf/router/route_reader.h"
#include "nf/router/router.h"
#include "packet/batch.h"
#include "packet/flow_hash.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::router {
namespace {

constexpr std::size_t kPackets = 32'768;
constexpr std::size_t kAtOnce = 128;
constexpr std::size_t kRoutes = 900'000;

const std::vector<std::string> kPorts{"lan", "wan", "dmz"};

template <typename Route>
struct Table {
  std::vector<Route> routes;
  std::string label;
};

const Table<Route4>& table4() {
  static const Table<Route4> table = [] {
    Table<Route4> made{corpus_routes4(), "full BGP table"};
    std::mt19937_64 random(1);
    while (made.routes.size() < kRoutes) {
      made.label = "synthetic table";
      const auto length = static_cast<std::uint8_t>(std::max<std::uint64_t>(16 + random() % 9, 16 + random() % 9));
      made.routes.push_back({{{static_cast<std::uint32_t>(random()) & ipv4_mask(length)}, length},
                             static_cast<std::uint32_t>(random() % 70'000)});
    }
    return made;
  }();
  return table;
}

const Table<Route6>& table6() {
  static const Table<Route6> table = [] {
    Table<Route6> made{corpus_routes6(), "full BGP table"};
    std::mt19937_64 random(1);
    while (made.routes.size() < kRoutes / 6) {
      made.label = "synthetic table";
      const auto length = static_cast<std::uint8_t>(32 + random() % 17);
      const Ipv6Address mask = ipv6_mask(length);
      made.routes.push_back({{{(std::uint64_t{1} << 61 | random() >> 3) & mask.high, 0}, length},
                             static_cast<std::uint32_t>(random() % 70'000)});
    }
    return made;
  }();
  return table;
}

/// Routes as `ip route` prints them, with some ten thousand different gateways.
template <typename Route>
const std::string& text_of(const Table<Route>& table, const char* gateway) {
  static const std::string text = [&] {
    std::string lines;
    for (const Route& route : table.routes) {
      lines += fmt::format("{} via {}{:x} dev {} proto bgp metric 20 \n", to_string(route.prefix), gateway,
                           route.value & 0xffff, kPorts[route.value % 3]);
    }
    return lines;
  }();
  return text;
}
const std::string& text4() { return text_of(table4(), "inet6 fe80::"); }
const std::string& text6() { return text_of(table6(), "fe80::"); }

RouterConfig read_config(std::string_view text, bool rewrites_macs) {
  RouterConfig config;
  config.devices = Devices(kPorts);
  config.ports.resize(kPorts.size(), {{{2, 0, 0, 0, 0, 9}}, rewrites_macs});
  config.routes = std::move(parse_routes(text, "bench", config.devices)->value);
  if (rewrites_macs) {
    config.neighbours.emplace();
    for (std::uint32_t place = 0; place < config.routes.next_hops.places(); ++place) {
      for (const NextHop& hop : config.routes.next_hops.hops(place)) {
        config.neighbours->push_back({hop.gateway, hop.device, {{2, 0, 0, 0, 1, 1}}});
      }
    }
  }
  return config;
}

/// The packets of one batch, and what is needed to send them again.
class Packets {
 public:
  template <typename Route>
  explicit Packets(const std::vector<Route>& routes)
      : bytes_(kPackets * 128), descriptors_(kPackets), batch_(bytes_, descriptors_, {}) {
    std::mt19937_64 random(2);
    for (std::size_t i = 0; i < kPackets; ++i) {
      const testing::Bytes frame = frame_to(routes[random() % routes.size()].prefix, random);
      batch_.append(frame, {.timestamp_ns = 0, .wire_length = static_cast<std::uint32_t>(frame.size())});
      const PacketView view = batch_.view(i);
      parse(view);
      view.packet->flow_hash = flow_hash(view);
      views_.push_back(view);
    }
    original_ = bytes_;
  }

  [[nodiscard]] std::span<PacketView> views() noexcept { return views_; }
  void restore() { std::copy(original_.begin(), original_.end(), bytes_.begin()); }

 private:
  static constexpr std::uint8_t kHops = 255;
  static testing::Bytes frame_to(const Ipv4Prefix& prefix, std::mt19937_64& random) {
    const Ipv4Address to{prefix.address.bits | (static_cast<std::uint32_t>(random()) & ~ipv4_mask(prefix.length))};
    return testing::packet()
        .eth()
        .ipv4("192.0.2.1", to_string(to), kHops)
        .udp(1, 2)
        .payload(std::string(22, 'x'))
        .bytes();
  }
  static testing::Bytes frame_to(const Ipv6Prefix& prefix, std::mt19937_64& random) {
    const Ipv6Address mask = ipv6_mask(prefix.length);
    const Ipv6Address to{prefix.address.high | (random() & ~mask.high), prefix.address.low | (random() & ~mask.low)};
    return testing::packet().eth().ipv6("2001:db8::1", to_string(to), kHops).udp(1, 2).payload("xx").bytes();
  }

  std::vector<std::uint8_t> bytes_, original_;
  std::vector<PacketDescriptor> descriptors_;
  Batch batch_;
  std::vector<PacketView> views_;
};

template <typename Route>
void forward(benchmark::State& state, const Table<Route>& table, const std::string& text, bool rewrites_macs,
             Fib4Engine engine = Fib4Engine::kDir24) {
  RouterConfig config = read_config(text, rewrites_macs);
  config.engine = engine;
  const auto router = Router::build(std::move(config));
  const auto stage = (*router)->make_cpu_stage();
  Packets packets(table.routes);
  int turns = 0;
  for (auto _ : state) {
    stage->begin_batch();
    for (std::size_t i = 0; i < kPackets; i += kAtOnce) stage->process(packets.views().subspan(i, kAtOnce));
    if (++turns == 200) {  // before the hop limits run out
      state.PauseTiming();
      packets.restore();
      turns = 0;
      state.ResumeTiming();
    }
  }
  const auto forwarded = std::ranges::count_if(packets.views(), [](PacketView p) { return p.packet->verdict.alive(); });
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kPackets));
  state.SetLabel(fmt::format("{}, {} routes, {:.1f}% forwarded", table.label, table.routes.size(),
                             100.0 * static_cast<double>(forwarded) / kPackets));
}

void load(benchmark::State& state, const std::string& text, std::size_t routes) {
  for (auto _ : state) {
    auto router = Router::build(read_config(text, false));
    benchmark::DoNotOptimize(router);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(routes));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}

void read_text(benchmark::State& state, const std::string& text, std::size_t routes) {
  for (auto _ : state) {
    Devices devices(kPorts);
    auto read = parse_routes(text, "bench", devices);
    benchmark::DoNotOptimize(read);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(routes));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}

/// Changes a route and changes it back, while no worker runs.
void update_routes(benchmark::State& state, Router& router) {
  Devices devices(kPorts);
  RouterChange there;
  RouterChange back;
  there.routes = std::move(parse_routes("203.0.113.0/25 via 10.9.9.9 dev dmz\n", "bench", devices)->value);
  back.erase4.push_back(there.routes.v4[0].prefix);
  for (auto _ : state) {
    benchmark::DoNotOptimize(router.update(there));
    benchmark::DoNotOptimize(router.update(back));
  }
  state.SetItemsProcessed(state.iterations() * 2);
}
void update(benchmark::State& state) { update_routes(state, **Router::build(read_config(text4(), false))); }

/// The same with a GPU that also has the tables: each time, the whole IPv4 table is copied to it.
void update_with_gpu(benchmark::State& state) {
  const gpu::DeviceList devices = gpu::list_devices();
  if (devices.availability != gpu::Availability::kUsable) return state.SkipWithError(devices.reason.c_str());
  const auto router = Router::build(read_config(text4(), false));
  (*router)
      ->make_device_stage(function::Processor::gpu, {})
      .reset();  // no batches to wait for, but the device keeps its tables
  update_routes(state, **router);
}

void forward_ipv4(benchmark::State& state, Fib4Engine engine, bool rewrites_macs) {
  forward(state, table4(), text4(), rewrites_macs, engine);
}
void forward_ipv6(benchmark::State& state, bool rewrites_macs) { forward(state, table6(), text6(), rewrites_macs); }
void read_text4(benchmark::State& state) { read_text(state, text4(), table4().routes.size()); }
void load4(benchmark::State& state) { load(state, text4(), table4().routes.size()); }
void load6(benchmark::State& state) { load(state, text6(), table6().routes.size()); }

BENCHMARK_CAPTURE(forward_ipv4, dir24, Fib4Engine::kDir24, false);
BENCHMARK_CAPTURE(forward_ipv4, dir24_macs, Fib4Engine::kDir24, true);
BENCHMARK_CAPTURE(forward_ipv4, trie4, Fib4Engine::kTrie4, false);
BENCHMARK_CAPTURE(forward_ipv4, trie1, Fib4Engine::kTrie1, false);
BENCHMARK_CAPTURE(forward_ipv6, plain, false);
BENCHMARK_CAPTURE(forward_ipv6, macs, true);
BENCHMARK(read_text4)->Unit(benchmark::kMillisecond);
BENCHMARK(load4)->Unit(benchmark::kMillisecond);
BENCHMARK(load6)->Unit(benchmark::kMillisecond);
BENCHMARK(update);
BENCHMARK(update_with_gpu)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace penstock::router

BENCHMARK_MAIN();
