// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The engines for BPF programs side by side: ns for a packet that is in the first- or second-level cache, on one core.
// Nothing but the program is timed. The packets are those of examples/gateway, repeated to 4,096.
//
// Axes: the engine and the expression.

#include <benchmark/benchmark.h>
#include <pcap/pcap.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "nf/filter/bpf/matcher.h"
#include "nf/filter/bpf/read_program.h"

namespace penstock::filter {
namespace {

constexpr std::size_t kPackets = 4096;

struct Packets {
  std::vector<std::vector<std::uint8_t>> bytes;
  std::vector<PacketBytes> views;
};

Packets read_packets() {
  Packets packets;
  for (const char* name : {"lan", "wan", "dmz"}) {
    char reason[PCAP_ERRBUF_SIZE];
    const std::string path = std::string(PENSTOCK_SOURCE_DIR "/examples/gateway/") + name + ".pcap";
    pcap_t* pcap = pcap_open_offline(path.c_str(), reason);
    if (pcap == nullptr) continue;
    pcap_pkthdr* header = nullptr;
    const u_char* data = nullptr;
    while (pcap_next_ex(pcap, &header, &data) == 1) packets.bytes.emplace_back(data, data + header->caplen);
    pcap_close(pcap);
  }
  for (std::size_t i = 0; !packets.bytes.empty() && i < kPackets; ++i) {
    const auto& bytes = packets.bytes[i % packets.bytes.size()];
    const auto length = static_cast<std::uint32_t>(bytes.size());
    packets.views.push_back({bytes.data(), length, length});
  }
  return packets;
}

void run(benchmark::State& state, const Packets& packets, Engine engine, const char* expression) {
  const auto program = compile_expression(expression, {}, {});
  if (packets.views.empty()) return state.SkipWithError("examples/gateway has no packets here");
  if (!program) return state.SkipWithError(to_string(program.error()).c_str());
  const auto matcher = make_matcher(engine, {*program});
  if (!matcher) return state.SkipWithError(to_string(matcher.error()).c_str());
  std::vector<std::uint32_t> returns(packets.views.size());
  for (auto _ : state) {
    (*matcher)->run(0, packets.views, returns.data());
    benchmark::DoNotOptimize(returns.data());
  }
  std::size_t matches = 0;
  for (const std::uint32_t value : returns) matches += value != 0 ? 1 : 0;
  const auto count = static_cast<double>(state.iterations()) * static_cast<double>(returns.size());
  state.SetItemsProcessed(static_cast<std::int64_t>(count));
  state.counters["ns/packet"] =
      benchmark::Counter(count * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["matches"] = static_cast<double>(matches) / static_cast<double>(returns.size());
  state.counters["instructions"] = static_cast<double>(program->instructions().size());
}

}  // namespace
}  // namespace penstock::filter

int main(int argc, char** argv) {
  using namespace penstock::filter;
  static constexpr const char* kEngines[] = {"interpreter", "libpcap", "jit"};
  static constexpr const char* kExpressions[] = {
      "ip",
      "tcp port 80",
      "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
      "host 10.0.0.1 and (tcp port 80 or tcp port 443 or udp port 53)",
      "tcp port 80 and (((ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2)) != 0)",
      "net 10.0.0.0/8 or net 172.16.0.0/12 or net 192.168.0.0/16 or portrange 1024-2048",
      "ip6 protochain 17",
  };
  const Packets packets = read_packets();
  for (const char* expression : kExpressions)
    for (const char* engine : kEngines)
      benchmark::RegisterBenchmark(
          (std::string(engine) + "/" + expression).c_str(),
          [=, &packets](benchmark::State& state) { run(state, packets, engine_of(engine), expression); });
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
