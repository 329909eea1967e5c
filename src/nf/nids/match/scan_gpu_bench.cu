// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel's scan rate for packets in device memory: TCP segments of traffic (match_bench_workload.h), stored one
// after the other as in a chain's batches. The rate counts whole frames; the time is measured by two events around
// several launches.
//
//   scan/stage       as chains run it (make_scan_stage)
//   scan/lanes/*     the hashed filter by the lanes that share a packet
//   scan/bits/*      the hashed filter by the size of its quads' bits
//   scan/packets     the automaton, a thread for each packet (gpu_matcher: aho_corasick)
//   scan/rows/*      the automaton, packets in strips, its rows in shared memory or in the device's
//
// Axes: literals (whole for scan/packets, else cut as the stage needs them), bytes of a frame (0: seven of 64, four of
// 594, one of 1518 in turn), packets of a batch (0: 512 MiB). The time is that of one launch. Counters: literals found
// per packet, packets with more literals than a finding can hold, candidates per KiB of text according to the hashed
// filter's bits.

#include <benchmark/benchmark.h>
#include <cuda_runtime.h>

#include <bit>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "gpu/check.cuh"
#include "gpu/devices.h"
#include "gpu/memory.h"
#include "gpu/stream.h"
#include "nf/nids/match/device_literals.h"
#include "nf/nids/match/match_bench_workload.h"
#include "nf/nids/match/rarity.h"
#include "nf/nids/match/scan_kernel.cuh"

namespace penstock::nids {
namespace {

constexpr int kLaunches = 10;  // per measurement
constexpr std::size_t kResidentBytes = std::size_t{512} << 20;
constexpr std::size_t kTextBytes = std::size_t{32} << 20;
constexpr std::uint32_t kHeaderBytes = 54;
constexpr std::uint32_t kMixed[] = {64, 594, 64, 594, 64, 64, 1518, 64, 594, 64, 594, 64};

bool no_gpu(benchmark::State& state) {
  static const gpu::DeviceList devices = gpu::list_devices();
  if (devices.availability == gpu::Availability::kUsable) return false;
  state.SkipWithError(devices.reason.c_str());
  return true;
}

/// Packets on the device.
struct Resident {
  gpu::DeviceBuffer<std::uint8_t> frames;
  gpu::DeviceBuffer<PacketDescriptor> packets;
  gpu::DeviceBuffer<PacketLiterals> findings;
  std::uint64_t bytes = 0;

  [[nodiscard]] gpu::DevicePackets batch() {
    return {frames.data(), packets.data(), static_cast<std::uint32_t>(packets.size()), 0,
            reinterpret_cast<std::byte*>(findings.data())};
  }
};

const testing::Bytes& text() {
  static const testing::Bytes bytes = testing::bench_text(kTextBytes);
  return bytes;
}

std::unique_ptr<Resident> make_resident(std::uint32_t frame_bytes, std::uint32_t count) {
  std::vector<PacketDescriptor> packets;
  std::uint32_t at = 2;
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; count != 0 ? i < count : bytes < kResidentBytes; ++i) {
    PacketDescriptor& packet = packets.emplace_back();
    packet.offset = at;
    packet.length = packet.wire_length = frame_bytes != 0 ? frame_bytes : kMixed[i % std::size(kMixed)];
    packet.layout.network_offset = 14;
    packet.layout.transport_offset = 34;
    packet.layout.payload_offset = kHeaderBytes;
    packet.layout.end = packet.length;
    packet.layout.flags = PacketLayout::kNetworkHeader | PacketLayout::kTransportHeader | PacketLayout::kPorts;
    packet.layout.network = NetworkLayer::ipv4;
    packet.layout.transport = ip_protocol::kTcp;
    bytes += packet.length;
    at = (at + packet.length + 15) / 16 * 16 + 2;
  }
  auto resident = std::make_unique<Resident>();
  resident->frames = gpu::DeviceBuffer<std::uint8_t>(at + kTextBytes);
  for (std::size_t done = 0; done < at; done += kTextBytes) {
    gpu::copy_to_device(resident->frames.data() + done, text().data(), kTextBytes);
  }
  resident->packets = gpu::DeviceBuffer<PacketDescriptor>(std::span<const PacketDescriptor>(packets));
  resident->findings = gpu::DeviceBuffer<PacketLiterals>(packets.size());
  resident->bytes = bytes;
  return resident;
}

/// Only the last one is kept, because benches with the same batch follow each other.
Resident& resident(std::uint32_t frame_bytes, std::uint32_t count) {
  static std::pair<std::uint32_t, std::uint32_t> key;
  static std::unique_ptr<Resident> kept;
  if (!kept || key != std::pair(frame_bytes, count)) {
    kept.reset();
    kept = make_resident(frame_bytes, count);
    key = {frame_bytes, count};
  }
  return *kept;
}

template <bool kPairs>
std::uint32_t candidates_of(const FilterBitsView& bits, const BlockWords& words) {
  return block_candidates<kPairs>(bits, words, block_windows<kPairs>(bits, words) & (kPairs ? ~0U : 0xffff'0000U),
                                  [](bool, std::uint32_t) { return false; });
}

struct Tables {
  explicit Tables(const ScanTables& tables) : description(tables.description()), literals(tables) {
    const auto* const filter = std::get_if<HashedFilterTables>(&tables.engine);
    if (filter == nullptr) return;
    const HashedFilterView view = filter->view();
    std::uint64_t candidates = 0;
    constexpr std::size_t kSample = std::size_t{4} << 20;
    for (std::size_t at = 0; at < kSample; at += kBlockBytes) {
      BlockWords words;
      std::memcpy(words, text().data() + at, sizeof(words));
      if (view.folds) {
        for (std::uint32_t& word : words) word = folded(word);
      }
      candidates += static_cast<unsigned>(
          std::popcount(view.pairs ? candidates_of<true>(view.bits, words) : candidates_of<false>(view.bits, words)));
    }
    candidates_per_kib = static_cast<double>(candidates) * 1024 / kSample;
  }

  std::string description;
  DeviceLiterals literals;
  double candidates_per_kib = 0;
};

/// Null if the engine cannot be built.
const Tables* tables_of(std::size_t count, ScanEngine engine, unsigned quad_words_log2) {
  static std::map<std::tuple<std::size_t, ScanEngine, unsigned>, std::unique_ptr<Tables>> made;
  auto& tables = made[{count, engine, quad_words_log2}];
  if (!tables) {
    const std::vector<Literal> whole = testing::bench_literals(count);
    const bool cuts = engine != ScanEngine::aho_corasick_packets;
    const auto built = build_scan_tables(cuts ? cut_literals(whole) : whole, engine, {quad_words_log2});
    if (!built) return nullptr;
    tables = std::make_unique<Tables>(*built);
  }
  return tables.get();
}

using Launch = std::function<bool(const gpu::DevicePackets&, const gpu::Stream&)>;
using MakeLaunch = Launch (*)(const DeviceLiterals&);

struct Variant {
  std::string name;
  ScanEngine engine;
  MakeLaunch make;
  unsigned quad_words_log2 = 0;
};

void scan(benchmark::State& state, const Variant& variant) {
  if (no_gpu(state)) return;
  const Tables* const tables =
      tables_of(static_cast<std::size_t>(state.range(0)), variant.engine, variant.quad_words_log2);
  if (tables == nullptr) return state.SkipWithError("no such engine for these literals");
  Resident& data = resident(static_cast<std::uint32_t>(state.range(1)), static_cast<std::uint32_t>(state.range(2)));
  Launch launch;
  try {
    launch = variant.make(tables->literals);
  } catch (const gpu::CudaError& error) {
    static_cast<void>(cudaGetLastError());
    return state.SkipWithError(error.what());
  }
  const gpu::Stream stream;
  const gpu::Event start(gpu::Event::Timing::kOn);
  const gpu::Event end(gpu::Event::Timing::kOn);
  const auto run = [&](int launches) {
    for (int i = 0; i < launches; ++i) {
      if (!launch(data.batch(), stream)) return false;
    }
    return true;
  };
  if (!run(2)) {
    static_cast<void>(cudaGetLastError());
    return state.SkipWithError("the driver refuses the work");
  }
  for (auto _ : state) {
    const bool good = start.record(stream) && run(kLaunches) && end.record(stream);
    if (!good) return state.SkipWithError("the driver refuses the work");
    end.wait();
    state.SetIterationTime(end.milliseconds_since(start) / 1e3 / kLaunches);
  }
  gpu::check_launch();

  const auto findings = data.findings.to_host();
  std::uint64_t found = 0;
  std::uint64_t too_many = 0;
  for (const PacketLiterals& finding : findings) {
    if ((finding.flags & PacketLiterals::kScanned) == 0) return state.SkipWithError("a packet was not scanned");
    found += finding.count;
    too_many += finding.complete() ? 0 : 1;
  }
  const auto rounds = static_cast<double>(state.iterations());
  const auto packets = static_cast<double>(findings.size());
  state.SetLabel(tables->description);
  state.counters["bits_per_second"] =
      benchmark::Counter(8 * rounds * static_cast<double>(data.bytes), benchmark::Counter::kIsRate);
  state.counters["packets_per_second"] = benchmark::Counter(rounds * packets, benchmark::Counter::kIsRate);
  state.counters["found_per_packet"] = static_cast<double>(found) / packets;
  state.counters["too_many"] = static_cast<double>(too_many) / packets;
  state.counters["candidates_per_kib"] = tables->candidates_per_kib;
}

Launch make_stage(const DeviceLiterals& literals) {
  std::shared_ptr<gpu::GpuStage> stage = make_scan_stage(literals);
  return [stage](const gpu::DevicePackets& batch, const gpu::Stream& stream) { return stage->enqueue(batch, stream); };
}

/// 0: as many as the stage would use.
template <unsigned kLanes = 0>
Launch make_filter(const DeviceLiterals& literals) {
  return with_scan(literals.engine(), false, []<typename Scan>(const Scan& scan) -> Launch {
    return [launch = ScanLauncher<Scan>(scan)](const gpu::DevicePackets& batch, const gpu::Stream& stream) {
      return launch(batch, stream, kLanes != 0 ? kLanes : launch.lanes(batch.count));
    };
  });
}

template <bool kRowsInShared>
Launch make_rows(const DeviceLiterals& literals) {
  return with_scan(literals.engine(), kRowsInShared,
                   [](const auto& scan) -> Launch { return ScanLauncher<std::decay_t<decltype(scan)>>(scan); });
}

std::vector<Variant> all_variants() {
  std::vector<Variant> variants;
  variants.push_back({"stage", ScanEngine::automatic, make_stage});
  variants.push_back({"lanes/4", ScanEngine::hashed_filter, make_filter<4>});
  variants.push_back({"lanes/8", ScanEngine::hashed_filter, make_filter<8>});
  variants.push_back({"lanes/16", ScanEngine::hashed_filter, make_filter<16>});
  variants.push_back({"lanes/32", ScanEngine::hashed_filter, make_filter<32>});
  for (const unsigned log2 : {10U, 12U, 13U, 14U, 15U}) {
    variants.push_back({"bits/" + std::to_string((std::size_t{4} << log2) / 1024) + "_KiB", ScanEngine::hashed_filter,
                        make_filter<>, log2});
  }
  variants.push_back({"rows/shared", ScanEngine::aho_corasick_strips, make_rows<true>});
  variants.push_back({"packets", ScanEngine::aho_corasick_packets, make_stage});
  variants.push_back({"rows/device", ScanEngine::aho_corasick_strips, make_rows<false>});
  return variants;
}

void add(const Variant& variant, std::uint32_t bytes, std::uint32_t packets) {
  auto* const bench = benchmark::RegisterBenchmark(("scan/" + variant.name).c_str(), scan, variant)
                          ->UseManualTime()
                          ->MinTime(0.02)
                          ->Unit(benchmark::kMicrosecond)
                          ->ArgNames({"literals", "bytes", "packets"});
  for (const int literals : {147, 2'000, 30'000}) {
    if (literals > 2'000 && variant.engine == ScanEngine::aho_corasick_strips) continue;
    bench->Args({literals, bytes, packets});
  }
}

}  // namespace
}  // namespace penstock::nids

int main(int argc, char** argv) {
  using namespace penstock::nids;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const auto variants = all_variants();
  // Ordered by batch, since making one takes the most time.
  for (const std::uint32_t bytes : {64U, 128U, 256U, 512U, 1024U, 1518U, 0U}) {
    const bool explores = bytes == 64 || bytes == 512 || bytes == 1518;
    for (const std::uint32_t packets : {0U, 2'750U, 8'000U}) {
      for (const Variant& variant : variants) {
        if (explores || (variant.name == "stage" && packets == 0)) add(variant, bytes, packets);
      }
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
