// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The cost of a port on one core: polling packets into a batch in host memory, or sending them from one, without a
// chain. Batches have 512 KiB and stay in the L2 cache. The upper bound for a port that copies is Batch::append alone
// on the same core; the pcap port is compared with libpcap's pcap_next_ex on the same file.
//
// Axes: frame bytes without the check sequence; number of flows. `Fragments` measures only the fragment table.

#include <benchmark/benchmark.h>
#include <pcap/pcap.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "packet/flow_hash.h"
#include "packet/parse_core.h"
#include "packet/testing/fragments.h"
#include "packet/testing/packet_builder.h"
#include "port/catalog.h"
#include "port/fragment_table.h"
#include "port/worker_key.h"

namespace penstock::port {
namespace {

constexpr std::size_t kBatchBytes = 512 << 10;

class OwnBatch {
 public:
  OwnBatch() : bytes_(kBatchBytes), descriptors_(8192), batch_(bytes_, descriptors_, {}) {}
  Batch& operator*() noexcept { return batch_; }
  Batch* operator->() noexcept { return &batch_; }

 private:
  std::vector<std::uint8_t> bytes_;
  std::vector<PacketDescriptor> descriptors_;
  Batch batch_;
};

using Given = std::vector<std::pair<std::string, std::string>>;

std::unique_ptr<Port> open_port(std::string_view name, const Given& given) {
  const PortKind* kind = find_kind(name);
  std::vector<RawParameter> raw;
  for (const auto& [key, value] : given) raw.push_back({key, {}, {}, {value}, RawParameter::Shape::scalar, ""});
  const auto parameters = Parameters::read(kind->parameters, std::move(raw), {});
  if (!parameters) std::abort();
  auto port = kind->make(*parameters, 0);
  if (!port || !(*port)->open(1)) std::abort();
  if (!(*port)->start()) std::abort();
  return std::move(*port);
}

/// A classic capture with `packets` packets of 1024 UDP flows.
class CaptureFile {
 public:
  CaptureFile(std::int64_t frame_bytes, std::uint64_t packets)
      : path_(std::filesystem::temp_directory_path() / ("penstock-bench-" + std::to_string(::getpid()) + ".pcap")) {
    auto from =
        open_port("generator", {{"size", std::to_string(frame_bytes + 4)}, {"packets", std::to_string(packets)}});
    auto to = open_port("pcap", {{"write", path_.string()}, {"precision", "us"}});
    OwnBatch batch;
    std::vector<PacketView> views;
    for (RxStatus status = RxStatus::more; status != RxStatus::end;) {
      batch->reset(0);
      status = from->rx(0)->poll(*batch);
      views.clear();
      for (std::size_t i = 0; i < batch->size(); ++i) views.push_back(batch->view(i));
      to->tx(0)->send(views);
    }
    if (!to->close().empty()) std::abort();
  }
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;
  ~CaptureFile() { std::filesystem::remove(path_); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

constexpr std::uint64_t packets_of_file(std::int64_t frame_bytes) {
  return (std::uint64_t{64} << 20) / static_cast<std::uint64_t>(frame_bytes);
}

void report(benchmark::State& state, std::uint64_t packets) {
  const auto frame_bytes = static_cast<std::uint64_t>(state.range(0));
  state.SetItemsProcessed(static_cast<std::int64_t>(packets));
  state.SetBytesProcessed(static_cast<std::int64_t>(packets * frame_bytes));
}

/// One iteration fills one batch.
void poll_batches(benchmark::State& state, Port& port) {
  OwnBatch batch;
  std::uint64_t packets = 0;
  for (auto _ : state) {
    batch->reset(0);
    port.rx(0)->poll(*batch);
    benchmark::ClobberMemory();
    packets += batch->size();
  }
  report(state, packets);
}

void CopyLimit(benchmark::State& state) {
  const std::vector<std::uint8_t> frame(static_cast<std::size_t>(state.range(0)));
  OwnBatch batch;
  std::uint64_t packets = 0;
  for (auto _ : state) {
    batch->reset(0);
    while (batch->append(frame, {1, 64, 0, LinkType::ethernet})) {
    }
    benchmark::ClobberMemory();
    packets += batch->size();
  }
  report(state, packets);
}

void Memory(benchmark::State& state) {
  const CaptureFile file(state.range(0), packets_of_file(state.range(0)));
  const auto port = open_port("memory", {{"read", file.path()}, {"loop", "0"}});
  poll_batches(state, *port);
}

void GeneratorUdp(benchmark::State& state) {
  const auto port =
      open_port("generator", {{"size", std::to_string(state.range(0) + 4)}, {"flows", std::to_string(state.range(1))}});
  poll_batches(state, *port);
}

void GeneratorTcpIpv6(benchmark::State& state) {
  const auto port = open_port("generator", {{"network", "ipv6"},
                                            {"transport", "tcp"},
                                            {"payload", "random"},
                                            {"size", std::to_string(state.range(0) + 4)},
                                            {"flows", std::to_string(state.range(1))}});
  poll_batches(state, *port);
}

/// One iteration reads the whole file, including opening it.
void PcapRead(benchmark::State& state) {
  const CaptureFile file(state.range(0), packets_of_file(state.range(0)));
  OwnBatch batch;
  std::uint64_t packets = 0;
  for (auto _ : state) {
    const auto port = open_port("pcap", {{"read", file.path()}});
    for (RxStatus status = RxStatus::more; status != RxStatus::end;) {
      batch->reset(0);
      status = port->rx(0)->poll(*batch);
      packets += batch->size();
    }
  }
  report(state, packets);
}

void PcapReadPeerLibpcap(benchmark::State& state) {
  const CaptureFile file(state.range(0), packets_of_file(state.range(0)));
  std::uint64_t packets = 0;
  for (auto _ : state) {
    std::array<char, PCAP_ERRBUF_SIZE> reason{};
    pcap_t* capture = pcap_open_offline(file.path().c_str(), reason.data());
    pcap_pkthdr* header = nullptr;
    const u_char* bytes = nullptr;
    while (pcap_next_ex(capture, &header, &bytes) == 1) {
      benchmark::DoNotOptimize(bytes);
      ++packets;
    }
    pcap_close(capture);
  }
  report(state, packets);
}

/// Writes to /dev/null: measures the encoding and the system calls, without a disk.
void PcapWrite(benchmark::State& state) {
  const auto from = open_port("generator", {{"size", std::to_string(state.range(0) + 4)}});
  const auto port = open_port("pcap", {{"write", "/dev/null"}});
  OwnBatch batch;
  from->rx(0)->poll(*batch);
  std::vector<PacketView> views;
  for (std::size_t i = 0; i < batch->size(); ++i) views.push_back(batch->view(i));
  std::uint64_t packets = 0;
  for (auto _ : state) {
    packets += port->tx(0)->send(views);
    port->tx(0)->flush();
  }
  report(state, packets);
}

/// TCP and UDP over IPv4, in frames of 60 bytes.
std::vector<testing::Bytes> frames_of_flows(std::size_t count) {
  std::vector<testing::Bytes> frames;
  for (std::size_t i = 0; i < count; ++i) {
    const auto from = static_cast<std::uint16_t>(1024 + i * 31);
    testing::PacketBuilder builder = testing::PacketBuilder().eth().ipv4("10.1.2.3", "198.18.0.7");
    frames.push_back((i % 2 == 0 ? builder.tcp(from, 80, 0x10) : builder.udp(from, 53)).bytes());
    frames.back().resize(60);
  }
  return frames;
}
constexpr std::size_t kFlows = 1024;

/// The reading thread's work for each packet: it determines the worker from a short look at the headers.
void WorkerOfFrame(benchmark::State& state) {
  const auto frames = frames_of_flows(kFlows);
  Fragment fragment;
  for (auto _ : state) {
    for (const testing::Bytes& frame : frames) {
      const auto length = static_cast<std::uint32_t>(frame.size());
      const WorkerKey key = worker_key_of(frame, length, LinkType::ethernet, fragment);
      benchmark::DoNotOptimize(worker_of_hash(key.hash, 16));
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(kFlows) * state.iterations());
}
/// The alternative, which is not used: determining the worker from the layout, which the workers then need not parse
/// again.
void WorkerOfLayout(benchmark::State& state) {
  auto frames = frames_of_flows(kFlows);
  std::vector<PacketDescriptor> packets(kFlows);
  for (auto _ : state) {
    for (std::size_t i = 0; i < kFlows; ++i) {
      packets[i].length = packets[i].wire_length = static_cast<std::uint32_t>(frames[i].size());
      const PacketView packet{frames[i].data(), &packets[i]};
      parse(packet);
      benchmark::DoNotOptimize(worker_of_hash(flow_hash(packet), 16));
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(kFlows) * state.iterations());
}

BENCHMARK(WorkerOfFrame);
BENCHMARK(WorkerOfLayout);
/// Fragments of 4,096 datagrams, three per datagram. Axis: whether the last fragments come first, so that two thirds
/// wait.
void Fragments(benchmark::State& state) {
  constexpr std::uint32_t kDatagrams = 4096;
  constexpr std::size_t kParts = 3;
  const bool reversed = state.range(0) != 0;
  std::vector<testing::Bytes> frames;
  for (std::size_t part = 0; part < kParts; ++part) {
    for (std::uint32_t i = 0; i < kDatagrams; ++i) {
      const std::string source = "10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256);
      const testing::Bytes whole =
          testing::PacketBuilder().eth().ipv4(source, "192.0.2.1").udp(1024, 53).payload(std::string(400, 'x')).bytes();
      frames.push_back(testing::fragments_of(whole, {128, 256}, i)[reversed ? kParts - 1 - part : part]);
    }
  }
  FragmentTable table(4);
  std::uint64_t given = 0, number = 0;
  auto use = [&](unsigned, const CapturedFrame& frame) noexcept {
    benchmark::DoNotOptimize(frame.bytes.data());
    ++given;
    return true;
  };
  for (auto _ : state) {
    for (const testing::Bytes& frame : frames) {
      const CapturedFrame captured{frame, ++number, static_cast<std::uint32_t>(frame.size()), LinkType::ethernet,
                                   number};
      Fragment fragment;
      const WorkerKey key = worker_key_of(frame, captured.wire_length, captured.link_type, fragment);
      table.take(key, fragment, captured, use);
    }
  }
  if (given != number || table.counts().not_followed != 0) state.SkipWithError("fragments were not followed");
  state.SetItemsProcessed(static_cast<std::int64_t>(number));
}

BENCHMARK(Fragments)->ArgName("reversed")->Arg(0)->Arg(1);
BENCHMARK(CopyLimit)->Arg(60)->Arg(1514);
BENCHMARK(Memory)->Arg(60)->Arg(1514);
BENCHMARK(GeneratorUdp)->Args({60, 1024})->Args({60, 1'000'000})->Args({1514, 1024});
BENCHMARK(GeneratorTcpIpv6)->Args({80, 1024})->Args({1514, 1024});
BENCHMARK(PcapRead)->Arg(60)->Arg(1514)->Unit(benchmark::kMillisecond);
BENCHMARK(PcapReadPeerLibpcap)->Arg(60)->Arg(1514)->Unit(benchmark::kMillisecond);
BENCHMARK(PcapWrite)->Arg(60)->Arg(1514);

}  // namespace
}  // namespace penstock::port

BENCHMARK_MAIN();
