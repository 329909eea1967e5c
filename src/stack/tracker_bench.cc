// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Packets per second of one core, from frames in memory.
//
//   decoder, tracker   a mix of real captures, again and again, each time so much later that all flows are new ones.
//                      Needs the corpus (PENSTOCK_CORPUS).
//   known_flows        TCP connections that are open already: data in order, acknowledged by the other side.
//   stream_functions   The same through several functions that inspect streams, which share a view or do not.

#include <benchmark/benchmark.h>
#include <zlib.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "packet/checksum.h"
#include "packet/ethernet.h"
#include "packet/ip.h"
#include "packet/transport.h"
#include "stack/decoder.h"
#include "stack/tcp_session.h"
#include "stack/tracker.h"
#include "stack/traffic_view.h"

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

/// Connections that take turns, and their packets in a ring of frames: two segments of the server, then an ACK of the
/// client, and so on. Frames lie one after the other with some room between them, as in a batch.
class Conversations {
 public:
  static constexpr std::size_t kFrames = 16384;

  Conversations(std::size_t flows, std::size_t payload)
      : flows_(flows), payload_(payload), stride_((kHeaders + payload + 127) / 64 * 64), bytes_(kFrames * stride_) {
    descriptors_.resize(kFrames);
    static constexpr std::string_view kText = "<p>The quick brown fox jumps over the lazy dog.</p> ";
    for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<std::uint8_t>(kText[i % kText.size()]);
    for (std::size_t i = 0; i < flows_.size(); ++i) flows_[i] = {static_cast<std::uint32_t>(i * 7919), 0x80000000};
  }

  /// Opens all connections: handshake and request.
  template <typename Use>
  void open(Use&& use) {
    static constexpr std::string_view kRequest = "GET /index.html HTTP/1.1\r\n\r\n";
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      use(write(0, i, kClient, TcpHeader::kSyn, 0));
      use(write(0, i, kServer, TcpHeader::kSyn | TcpHeader::kAck, 0));
      use(write(0, i, kClient, TcpHeader::kAck, 0));
      std::memcpy(bytes_.data() + kHeaders, kRequest.data(), kRequest.size());
      use(write(0, i, kClient, TcpHeader::kAck, kRequest.size()));
    }
  }
  /// Writes the next packets of all frames.
  void fill() {
    for (std::size_t i = 0; i < kFrames; ++i) {
      const bool is_ack = round_ % 3 == 2;
      write(i, turn_, is_ack ? kClient : kServer, TcpHeader::kAck, is_ack ? 0 : payload_);
      if (++turn_ == flows_.size()) {
        turn_ = 0;
        ++round_;
      }
    }
  }
  [[nodiscard]] std::size_t flows() const { return flows_.size(); }
  [[nodiscard]] PacketView packet(std::size_t i) { return {bytes_.data() + i * stride_, &descriptors_[i]}; }
  [[nodiscard]] std::span<const PacketView> packets(std::size_t first, std::size_t count) {
    views_.clear();
    for (std::size_t i = 0; i < count; ++i) views_.push_back(packet(first + i));
    return views_;
  }

 private:
  enum From : std::uint8_t { kClient, kServer };
  struct Headers {
    EthernetHeader ethernet;
    Ipv4Header ip;
    TcpHeader tcp;
  };
  static constexpr std::size_t kHeaders = sizeof(Headers);
  struct Sequences {
    std::uint32_t of[2];
  };

  PacketView write(std::size_t at, std::size_t flow, From from, std::uint8_t flags, std::size_t payload) {
    Headers headers{};
    auto& [ethernet, ip, tcp] = headers;
    Sequences& sequences = flows_[flow];
    const std::uint32_t address[2] = {0x0a000000 + static_cast<std::uint32_t>(flow), 0xc6120001};
    const std::uint16_t port[2] = {static_cast<std::uint16_t>(1024 + flow % 50000), 80};
    const auto length = static_cast<std::uint16_t>(sizeof ip + sizeof tcp + payload);
    ethernet.type.set(ether_type::kIpv4);
    ip.version_ihl = 0x45;
    ip.total_length.set(length);
    ip.ttl = 64;
    ip.protocol = ip_protocol::kTcp;
    ip.source.set(address[from]);
    ip.destination.set(address[1 - from]);
    ip.checksum.set(checksum(reinterpret_cast<const std::uint8_t*>(&ip), sizeof ip));
    tcp.source_port.set(port[from]);
    tcp.destination_port.set(port[1 - from]);
    tcp.sequence.set(sequences.of[from]);
    if ((flags & TcpHeader::kAck) != 0) tcp.acknowledgment.set(sequences.of[1 - from]);
    tcp.data_offset = sizeof tcp / 4 << 4;
    tcp.flags = flags;
    tcp.window.set(0xffff);
    sequences.of[from] += static_cast<std::uint32_t>(payload) + ((flags & TcpHeader::kSyn) != 0 ? 1 : 0);
    std::memcpy(bytes_.data() + at * stride_, &headers, sizeof headers);
    PacketDescriptor& descriptor = descriptors_[at];
    descriptor.timestamp_ns = now_ns_ += 100;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(kHeaders + payload);
    descriptor.link_type = LinkType::ethernet;
    return packet(at);
  }

  std::vector<Sequences> flows_;
  std::size_t payload_, stride_;
  std::vector<std::uint8_t> bytes_;
  std::vector<PacketDescriptor> descriptors_;
  std::vector<PacketView> views_;
  std::size_t turn_ = 0, round_ = 0;
  std::uint64_t now_ns_ = 1'700'000'000'000'000'000;
};

/// Measures `track`, which is given spans of at most kMostPrefetched packets, once all connections are open.
/// `counters`: of the tracker, or of one of them.
template <typename Track>
void follow(benchmark::State& state, Conversations conversations, std::size_t payload, const TrackerCounters& counters,
            Track&& track) {
  std::uint64_t packets = 0;
  conversations.open([&](PacketView packet) {
    track(std::span<const PacketView>(&packet, 1));
    ++packets;
  });
  const auto track_all = [&] {
    for (std::size_t i = 0; i < Conversations::kFrames; i += Tracker::kMostPrefetched) {
      track(conversations.packets(i, Tracker::kMostPrefetched));
    }
    packets += Conversations::kFrames;
  };
  // Until the memory of each connection is as large as it stays.
  for (const std::size_t before = packets; packets - before < conversations.flows() * 3 * (3 + 4096 / payload);) {
    conversations.fill();
    track_all();
  }
  for (auto _ : state) {
    state.PauseTiming();
    conversations.fill();
    state.ResumeTiming();
    track_all();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * Conversations::kFrames));
  // All must have been taken: else this measures something else.
  if (counters.flows != conversations.flows() || counters.tcp_unknown_connection != 0 || counters.stream_gaps != 0 ||
      counters.stream_memory_refused != 0 || counters.contested_segments != 0) {
    state.SkipWithError("segments were not taken as in order");
  }
  state.counters["streamed"] =
      benchmark::Counter(static_cast<double>(counters.stream_bytes) / static_cast<double>(packets));
}

TrackerOptions options_of_long_connections() {
  TrackerOptions options;
  options.stream_depth = 0;  // else the tracker keeps no more bytes of them
  options.stream_memory = std::size_t{4} << 30;
  return options;
}

void known_flows(benchmark::State& state) {
  TrackerOptions options = options_of_long_connections();
  options.inline_streams = state.range(2) != 0;
  Tracker tracker(options);
  Looker looker;
  const auto payload = static_cast<std::size_t>(state.range(1));
  std::uint64_t number = 0;
  follow(state, Conversations(static_cast<std::size_t>(state.range(0)), payload), payload, tracker.counters(),
         [&](std::span<const PacketView> packets) {
           tracker.prefetch(packets, looker);
           for (const PacketView packet : packets) tracker.track(packet, ++number, looker);
         });
}
BENCHMARK(known_flows)
    ->ArgNames({"flows", "payload", "inline"})
    ->ArgsProduct({{64, 4096, 65536}, {64, 512, 1460}, {0, 1}});

/// A function that inspects streams, and nothing more.
class StreamFunction final : public FrameSink {
 public:
  explicit StreamFunction(Attachment& attachment) : attachment_(attachment) { attachment.look_with(*this); }
  void process(std::span<const PacketView> packets) noexcept {
    if (!attachment_.tracks()) return;
    attachment_.prefetch(packets);
    for (std::size_t i = 0; i < packets.size(); ++i) attachment_.track(packets[i], i);
  }
  void begin_frame(PacketView, std::size_t) noexcept override {}
  void begin_end() noexcept override {}
  void packet(TrackedPacket& packet) noexcept override { looker_.packet(packet); }

 private:
  Attachment& attachment_;
  Looker looker_;
};

/// Several functions in a row that need streams: each with its own view, or all sharing one.
void stream_functions(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  const bool shared = state.range(1) != 0;
  const auto payload = static_cast<std::size_t>(state.range(2));
  const std::vector<std::uint32_t> seams(shared ? count : 1, 0);
  std::vector<std::unique_ptr<TrafficView>> views;
  std::vector<std::unique_ptr<StreamFunction>> functions;
  for (unsigned f = 0; f < count; ++f) {
    if (f == 0 || !shared) views.push_back(std::make_unique<TrafficView>(options_of_long_connections(), seams));
    functions.push_back(std::make_unique<StreamFunction>(views.back()->attachment(shared ? f : 0)));
  }
  follow(state, Conversations(4096, payload), payload, views.front()->attachment(0).counters(),
         [&](std::span<const PacketView> packets) {
           for (const auto& function : functions) function->process(packets);
         });
}
BENCHMARK(stream_functions)->ArgNames({"functions", "shared", "payload"})->ArgsProduct({{1, 2, 4}, {0, 1}, {64, 1460}});

}  // namespace

BENCHMARK_MAIN();
