// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Packets per second of one core, from frames in memory, by bursts of 64. Writing the frames is not timed.
//
//   known_tcp    open connections that take turns, packet by packet: two segments of the server, then an ACK
//   known_udp    the same with datagrams
//   new_tcp      a SYN for a connection that is not known. The table is full, so each makes an older one leave early
//   new_udp      a datagram for a connection that is not known; connections expire in the meantime

#include <benchmark/benchmark.h>

#include <cstring>
#include <span>
#include <vector>

#include "conntrack/table.h"
#include "conntrack/testing/packets.h"

namespace {

using namespace penstock;
using namespace penstock::conntrack;

constexpr std::size_t kFrames = 1024, kBurst = 64;  // frames stay in the second-level cache, as after parsing
constexpr std::uint8_t kSyn = TcpHeader::kSyn, kAck = TcpHeader::kAck;

/// Frames that lie one after the other, as in a batch.
class Frames {
 public:
  explicit Frames(std::size_t payload) : stride_((payload + 191) / 64 * 64), bytes_(kFrames * stride_) {
    descriptors_.resize(kFrames);
  }

  void write(std::size_t at, const Packet& packet) {
    std::memcpy(bytes_.data() + at * stride_, packet.data(), packet.size());
    PacketDescriptor& descriptor = descriptors_[at];
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(packet.size());
    descriptor.link_type = LinkType::raw_ip;
    parse(view(at));
  }
  [[nodiscard]] PacketView view(std::size_t at) { return {bytes_.data() + at * stride_, &descriptors_[at]}; }

 private:
  std::size_t stride_;
  std::vector<std::uint8_t> bytes_;
  std::vector<PacketDescriptor> descriptors_;
};

void track_burst(Table& table, Frames& frames, std::size_t from, std::uint64_t now_ns, bool prefetching) {
  std::array<std::uint32_t, kBurst> hashes;
  if (prefetching) {
    for (std::size_t i = 0; i < kBurst; ++i) {
      hashes[i] = table.likely_hash(frames.view(from + i));
      table.prefetch_bucket(hashes[i]);
    }
    for (const std::uint32_t hash : hashes) table.prefetch_connection(hash);
  }
  for (std::size_t i = 0; i < kBurst; ++i) {
    const Tracked tracked = table.track(frames.view(from + i), now_ns);
    if (tracked.state == State::new_connection) table.confirm(*tracked.connection);
    benchmark::DoNotOptimize(tracked.connection);
  }
  table.expire(now_ns);
}

Ends ends_of(std::size_t number) {
  return {.source = to_string(Ipv4Address{0x0a000000 + static_cast<std::uint32_t>(number >> 15)}),
          .source_port = static_cast<std::uint16_t>(number & 0x7fff)};
}

/// Writes frames by `write(frame)`, and tracks them, until the time is over.
template <typename Write>
void measure(benchmark::State& state, Table& table, std::size_t payload, bool prefetching, std::uint64_t step_ns,
             Write&& write) {
  Frames frames(payload);
  std::uint64_t now_ns = 1'000'000'000'000;
  for (auto _ : state) {
    state.PauseTiming();
    for (std::size_t i = 0; i < kFrames; ++i) frames.write(i, write());
    state.ResumeTiming();
    for (std::size_t i = 0; i < kFrames; i += kBurst) track_burst(table, frames, i, now_ns += step_ns, prefetching);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kFrames));
  std::uint64_t invalid = 0;
  for (const std::uint64_t count : table.counters().invalid) invalid += count;
  state.counters["invalid"] = static_cast<double>(invalid);
  state.counters["connections"] = static_cast<double>(table.counters().connections);
  state.counters["early_drops"] = static_cast<double>(table.counters().early_drops);
  state.counters["expired"] = static_cast<double>(table.counters().expired);
}

Options options_of(const benchmark::State& state) {
  Options options;
  options.most_connections = 1 << 20;
  options.checksum = state.range(2) != 0;
  return options;
}

void known_tcp(benchmark::State& state) {
  const auto connections = static_cast<std::size_t>(state.range(0));
  const auto payload = static_cast<std::size_t>(state.range(1));
  Table table(options_of(state));
  struct Sequences {
    std::uint32_t client = 1, server = 1;
  };
  std::vector<Sequences> all(connections);
  std::vector<Ends> ends;
  const auto pass = [&](const Packet& packet) {
    ParsedPacket parsed(packet);
    const Tracked tracked = table.track(parsed.view(), 0);
    if (tracked.connection != nullptr) table.confirm(*tracked.connection);
  };
  for (std::size_t i = 0; i < connections; ++i) {
    ends.push_back(ends_of(i));
    pass(tcp_packet(ends[i], {.flags = kSyn}));
    pass(tcp_packet(ends[i].reversed(), {.flags = kSyn | kAck, .ack = 1, .window = 65'535}));
    pass(tcp_packet(ends[i], {.sequence = 1, .ack = 1, .window = 65'535}));
  }
  std::size_t turn = 0, round = 0;
  measure(state, table, payload, state.range(3) != 0, 8000, [&] {
    Sequences& sequences = all[turn];
    const Ends& of = ends[turn];
    const bool is_ack = round % 3 == 2;
    if (++turn == connections) turn = 0, ++round;
    if (is_ack) return tcp_packet(of, {.sequence = sequences.client, .ack = sequences.server, .window = 65'535});
    const std::uint32_t sequence = sequences.server;
    sequences.server += static_cast<std::uint32_t>(payload);
    return tcp_packet(of.reversed(),
                      {.sequence = sequence, .ack = sequences.client, .window = 65'535, .payload = payload});
  });
}
BENCHMARK(known_tcp)
    ->ArgNames({"connections", "payload", "checksum", "prefetch"})
    ->ArgsProduct({{4096, 65'536, 524'288}, {10}, {0, 1}, {0, 1}})
    ->Args({4096, 1400, 1, 1});

void known_udp(benchmark::State& state) {
  const auto connections = static_cast<std::size_t>(state.range(0));
  const auto payload = static_cast<std::size_t>(state.range(1));
  Table table(options_of(state));
  std::size_t turn = 0;
  bool reply = false;
  measure(state, table, payload, state.range(3) != 0, 8000, [&] {
    const Ends ends = ends_of(turn);
    if (++turn == connections) turn = 0, reply = !reply;
    return udp_packet(reply ? ends.reversed() : ends, payload);
  });
}
BENCHMARK(known_udp)
    ->ArgNames({"connections", "payload", "checksum", "prefetch"})
    ->ArgsProduct({{4096, 65'536}, {10}, {1}, {0, 1}});

void new_tcp(benchmark::State& state) {
  Table table(options_of(state));
  std::size_t next = 0;
  measure(state, table, 0, state.range(3) != 0, 64'000, [&] { return tcp_packet(ends_of(next++), {.flags = kSyn}); });
}
BENCHMARK(new_tcp)->ArgNames({"connections", "payload", "checksum", "prefetch"})->ArgsProduct({{0}, {0}, {1}, {0, 1}});

void new_udp(benchmark::State& state) {
  Table table(options_of(state));
  std::size_t next = 0;
  measure(state, table, 0, state.range(3) != 0, 10'000'000, [&] { return udp_packet(ends_of(next++)); });
}
BENCHMARK(new_udp)->ArgNames({"connections", "payload", "checksum", "prefetch"})->ArgsProduct({{0}, {0}, {1}, {0, 1}});

}  // namespace

BENCHMARK_MAIN();
