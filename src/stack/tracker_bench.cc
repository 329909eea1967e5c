// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Packets a second of one core over a mix of real captures, which lies in memory: decoded, and tracked. The mix comes
// again and again, each time so much later that all flows are new ones. Needs the corpus (PENSTOCK_CORPUS).

#include <benchmark/benchmark.h>
#include <zlib.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "stack/decoder.h"
#include "stack/tcp_session.h"
#include "stack/tracker.h"

using namespace penstock;
using namespace penstock::stack;

namespace {

struct Mix {
  struct Frame {
    std::size_t at;
    PacketDescriptor descriptor;
  };
  std::vector<std::uint8_t> bytes;
  std::vector<Frame> frames;
  std::uint64_t span_ns = 0;
};

/// A pcap file of little-endian microseconds, compressed; nothing where it cannot be read.
Mix read_mix(const std::string& path) {
  Mix mix;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  struct {
    std::uint32_t magic, version, zone, accuracy, most, link;
  } head{};
  struct {
    std::uint32_t seconds, microseconds, length, wire_length;
  } record{};
  if (file == nullptr || gzread(file.get(), &head, sizeof head) != sizeof head || head.magic != 0xa1b2c3d4) return mix;
  while (gzread(file.get(), &record, sizeof record) == sizeof record) {
    Mix::Frame frame{.at = mix.bytes.size(), .descriptor = {}};
    frame.descriptor.timestamp_ns = record.seconds * 1'000'000'000ULL + record.microseconds * 1000ULL;
    frame.descriptor.length = record.length;
    frame.descriptor.wire_length = record.wire_length;
    frame.descriptor.link_type = head.link == 1 ? LinkType::ethernet : LinkType::raw_ip;
    mix.bytes.resize(frame.at + record.length);
    if (gzread(file.get(), mix.bytes.data() + frame.at, record.length) != static_cast<int>(record.length)) break;
    mix.frames.push_back(frame);
  }
  if (!mix.frames.empty()) {
    mix.span_ns = mix.frames.back().descriptor.timestamp_ns - mix.frames.front().descriptor.timestamp_ns;
  }
  return mix;
}

const Mix& mix() {
  static const Mix kMix = [] {
    const char* const corpus = std::getenv("PENSTOCK_CORPUS");
    return corpus == nullptr ? Mix{} : read_mix(std::string(corpus) + "/captures/mix.pcap.gz");
  }();
  return kMix;
}

/// Gives `use` each frame of the mix, over and over, its time going on.
template <typename Use>
void run(benchmark::State& state, Use&& use) {
  if (mix().frames.empty()) {
    state.SkipWithError("no captures: PENSTOCK_CORPUS");
    return;
  }
  std::vector<std::uint8_t> bytes = mix().bytes;
  std::uint64_t number = 0, later_ns = 0;
  std::int64_t packets = 0, amount = 0;
  for (auto _ : state) {
    for (const Mix::Frame& frame : mix().frames) {
      PacketDescriptor descriptor = frame.descriptor;
      descriptor.timestamp_ns += later_ns;
      use(PacketView{bytes.data() + frame.at, &descriptor}, ++number);
      amount += descriptor.length;
    }
    packets += static_cast<std::int64_t>(mix().frames.size());
    later_ns += mix().span_ns + 1'000'000'000'000;
  }
  state.SetItemsProcessed(packets);
  state.SetBytesProcessed(amount);
}

void decoder(benchmark::State& state) {
  TrackerCounters counters;
  Decoder decoder(TrackerOptions{}, counters);
  run(state, [&](PacketView packet, std::uint64_t number) {
    decoder.decode(packet, number, [](DecodedPacket& decoded) noexcept { benchmark::DoNotOptimize(decoded.payload); });
  });
}
BENCHMARK(decoder)->Unit(benchmark::kMillisecond);

class Looker final : public PacketSink {
 public:
  void packet(TrackedPacket& packet) noexcept override {
    if (!packet.stream_ready) return;
    packet.flow->tcp->inspect(packet.direction, packet.stream_end,
                              [](const StreamChunk& chunk) { benchmark::DoNotOptimize(chunk.bytes.data()); });
  }
};

void tracker(benchmark::State& state) {
  TrackerOptions options;
  options.inline_streams = state.range(0) != 0;
  Tracker tracker(options);
  Looker looker;
  run(state, [&](PacketView packet, std::uint64_t number) { tracker.track(packet, number, looker); });
  state.counters["flows"] = static_cast<double>(tracker.counters().flows);
  state.counters["gaps"] = static_cast<double>(tracker.counters().stream_gaps);
  state.counters["refused"] = static_cast<double>(tracker.counters().stream_memory_refused);
}
BENCHMARK(tracker)->Unit(benchmark::kMillisecond)->ArgName("inline")->Arg(0)->Arg(1);

}  // namespace

BENCHMARK_MAIN();
