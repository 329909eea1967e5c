// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Packets per second of one core, from frames in memory, by bursts of 64. Writing the frames is not timed.
//
//   known_tcp    open connections that take turns, packet by packet: two segments of the server, then an ACK
//   known_udp    the same with datagrams
//   new_tcp      a SYN for a connection that is not known. The table is full, so each makes an older one leave early
//   new_udp      a datagram for a connection that is not known; connections expire in the meantime
//   nat_udp      as known_udp, and what a router with NAT does with each packet. Without `translated`, no rule
//                translates the connections. With `shared`, as one of several workers: the owner of each packet is
//                looked up before, and the tuples of new connections are entered for all workers
//   nat_new_udp  as new_udp, with a new translation for each connection
//   nat_others   the owners of packets of translated connections that have come to another worker

#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "conntrack/nat.h"
#include "conntrack/table.h"
#include "conntrack/testing/packets.h"

namespace {

using namespace penstock;
using namespace penstock::conntrack;

constexpr std::uint64_t kStartNs = 1'000'000'000'000;
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

/// Writes frames by `write()`, and processes them by `process(frames, first, now_ns)`, until the time is over.
template <typename Write, typename Process>
void measure_bursts(benchmark::State& state, Table& table, std::size_t payload, std::uint64_t step_ns, Write&& write,
                    Process&& process) {
  Frames frames(payload);
  std::uint64_t now_ns = kStartNs;
  for (auto _ : state) {
    state.PauseTiming();
    for (std::size_t i = 0; i < kFrames; ++i) frames.write(i, write());
    state.ResumeTiming();
    for (std::size_t i = 0; i < kFrames; i += kBurst) process(frames, i, now_ns += step_ns);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kFrames));
  std::uint64_t invalid = 0;
  for (const std::uint64_t count : table.counters().invalid) invalid += count;
  state.counters["invalid"] = static_cast<double>(invalid);
  state.counters["connections"] = static_cast<double>(table.counters().connections);
  state.counters["early_drops"] = static_cast<double>(table.counters().early_drops);
  state.counters["expired"] = static_cast<double>(table.counters().expired);
}

template <typename Write>
void measure(benchmark::State& state, Table& table, std::size_t payload, bool prefetching, std::uint64_t step_ns,
             Write&& write) {
  measure_bursts(state, table, payload, step_ns, write, [&](Frames& frames, std::size_t from, std::uint64_t now_ns) {
    track_burst(table, frames, from, now_ns, prefetching);
  });
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
    ->ArgsProduct({{4096, 65'536}, {10}, {0, 1}, {0, 1}});

void new_tcp(benchmark::State& state) {
  Table table(options_of(state));
  std::size_t next = 0;
  measure(state, table, 0, state.range(3) != 0, 64'000, [&] { return tcp_packet(ends_of(next++), {.flags = kSyn}); });
}
BENCHMARK(new_tcp)
    ->ArgNames({"connections", "payload", "checksum", "prefetch"})
    ->ArgsProduct({{0}, {0}, {0, 1}, {0, 1}});

void new_udp(benchmark::State& state) {
  Table table(options_of(state));
  std::size_t next = 0;
  measure(state, table, 0, state.range(3) != 0, 10'000'000, [&] { return udp_packet(ends_of(next++)); });
}
BENCHMARK(new_udp)
    ->ArgNames({"connections", "payload", "checksum", "prefetch"})
    ->ArgsProduct({{0}, {0}, {0, 1}, {0, 1}});

/// The hosts of an inside behind four addresses; without `translated`, a range that changes nothing.
NatRange range_of(bool translated) {
  if (!translated) return {};
  constexpr std::uint64_t kFirst = 0xc0000201;
  return {.first_address = {0, kFirst}, .last_address = {0, kFirst + 3}, .flags = NatRange::kAddresses};
}

std::array<std::optional<unsigned>, kBurst> find_owners(Table& table, Frames& frames, std::size_t from) {
  std::array<PacketView, kBurst> packets;
  for (std::size_t i = 0; i < kBurst; ++i) packets[i] = frames.view(from + i);
  std::array<std::optional<unsigned>, kBurst> owners;
  table.find_owners(packets, owners);
  return owners;
}

void translate_burst(Table& table, Frames& frames, std::size_t from, std::uint64_t now_ns, const NatRange& range) {
  if (table.shares()) {
    benchmark::DoNotOptimize(find_owners(table, frames, from));
  } else {
    std::array<std::uint32_t, kBurst> hashes;
    for (std::size_t i = 0; i < kBurst; ++i) {
      hashes[i] = table.likely_hash(frames.view(from + i));
      table.prefetch_bucket(hashes[i]);
    }
    for (const std::uint32_t hash : hashes) table.prefetch_connection(hash);
  }
  for (std::size_t i = 0; i < kBurst; ++i) {
    const PacketView packet = frames.view(from + i);
    const Tracked tracked = table.track(packet, now_ns);
    const bool begins = tracked.state == State::new_connection && !tracked.connection->confirmed();
    bool passes = !begins || (table.translate(*tracked.connection, NatKind::destination, {}) &&
                              table.translate(*tracked.connection, NatKind::source, range));
    passes = passes && rewrite(packet, rewrite_for(tracked, Rewrite::kDestination)) &&
             rewrite(packet, rewrite_for(tracked, Rewrite::kSource));
    if (begins && passes) table.confirm(*tracked.connection);
    benchmark::DoNotOptimize(passes);
  }
  table.expire(now_ns);
}

/// Many hosts and destinations, so that each can keep its port.
Ends nat_ends_of(std::size_t number) {
  constexpr std::size_t kHosts = 64, kPorts = 32'768;
  return {.source = to_string(Ipv4Address{0x0a000001 + static_cast<std::uint32_t>(number % kHosts)}),
          .destination = to_string(Ipv4Address{0xc6120001 + static_cast<std::uint32_t>(number / kPorts)}),
          .source_port = static_cast<std::uint16_t>(1024 + number % kPorts)};
}

/// Connections of the table, as a router translates them. Returns the packets of both directions, as they come to the
/// router; none if a port is taken.
std::array<std::vector<Packet>, 2> begin_translated(Table& table, std::size_t connections, const NatRange& range) {
  std::array<std::vector<Packet>, 2> packets;
  for (std::size_t i = 0; i < connections; ++i) {
    packets[0].push_back(udp_packet(nat_ends_of(i), 10));
    ParsedPacket parsed(packets[0].back());
    const Tracked tracked = table.track(parsed.view(), kStartNs);
    if (!table.translate(*tracked.connection, NatKind::destination, {}) ||
        !table.translate(*tracked.connection, NatKind::source, range) || !table.confirm(*tracked.connection)) {
      return {};
    }
    const Tuple& reply = tracked.connection->reply;
    packets[1].push_back(
        udp_packet({.source = to_string(Ipv4Address{static_cast<std::uint32_t>(reply.source.low)}),
                    .destination = to_string(Ipv4Address{static_cast<std::uint32_t>(reply.destination.low)}),
                    .source_port = reply.source_port,
                    .destination_port = reply.destination_port},
                   10));
  }
  return packets;
}

void nat_udp(benchmark::State& state) {
  const auto connections = static_cast<std::size_t>(state.range(0));
  const NatRange range = range_of(state.range(1) != 0);
  constexpr std::uint32_t kMost = 1 << 20;
  Table table(Options{.most_connections = kMost});
  if (state.range(2) != 0) table.share(std::make_shared<TupleOwners>(std::uint64_t{kMost} * 2 * 4), 0);
  const auto packets = begin_translated(table, connections, range);
  if (packets[0].empty()) return state.SkipWithError("a port is taken");
  std::size_t turn = 0;
  unsigned direction = 1;
  measure_bursts(
      state, table, 10, 8000,
      [&] {
        if (turn == connections) turn = 0, direction ^= 1;
        return packets[direction][turn++];
      },
      [&](Frames& frames, std::size_t from, std::uint64_t now_ns) {
        translate_burst(table, frames, from, now_ns, range);
      });
}
BENCHMARK(nat_udp)->ArgNames({"connections", "translated", "shared"})->ArgsProduct({{4096, 65'536}, {0, 1}, {0, 1}});

void nat_new_udp(benchmark::State& state) {
  const NatRange range = range_of(state.range(1) != 0);
  constexpr std::uint32_t kMost = 1 << 16;
  Table table(Options{.most_connections = kMost});
  if (state.range(2) != 0) table.share(std::make_shared<TupleOwners>(std::uint64_t{kMost} * 2 * 4), 0);
  std::size_t next = 0;
  measure_bursts(
      state, table, 10, 100'000'000, [&] { return udp_packet(nat_ends_of(next++), 10); },
      [&](Frames& frames, std::size_t from, std::uint64_t now_ns) {
        translate_burst(table, frames, from, now_ns, range);
      });
  state.counters["no_free_port"] = static_cast<double>(table.counters().no_free_port);
}
BENCHMARK(nat_new_udp)->ArgNames({"connections", "translated", "shared"})->ArgsProduct({{0}, {0, 1}, {0, 1}});

void nat_others(benchmark::State& state) {
  const auto connections = static_cast<std::size_t>(state.range(0));
  constexpr std::uint32_t kMost = 1 << 20;
  const auto owners = std::make_shared<TupleOwners>(std::uint64_t{kMost} * 2 * 4);
  Table own(Options{.most_connections = kMost}), other(Options{.most_connections = kMost});
  own.share(owners, 0);
  other.share(owners, 1);
  const auto packets = begin_translated(other, connections, range_of(true));
  if (packets[0].empty()) return state.SkipWithError("a port is taken");
  std::size_t turn = 0;
  measure_bursts(
      state, own, 10, 8000, [&] { return packets[1][turn++ % connections]; },
      [&](Frames& frames, std::size_t from, std::uint64_t) {
        if (find_owners(own, frames, from)[7] != 1U) state.SkipWithError("another owner");
      });
}
BENCHMARK(nat_others)->ArgNames({"connections"})->Arg(4096)->Arg(65'536);

}  // namespace

BENCHMARK_MAIN();
