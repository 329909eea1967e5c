// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What nf_conntrack costs the kernel for each packet, beside conntrack_bench: the same kinds of packets go the same way
// through two network namespaces, one of which tracks connections. The time is the difference; `untracked_ns` is the
// rest of the way. Neither verifies checksums of TCP and UDP. Needs root; pin it to a core with taskset.
//
//   kernel_known_tcp, kernel_known_udp  as known_tcp and known_udp. Packets are dropped after the look-up
//   kernel_new_tcp, kernel_new_udp      each packet begins a connection, and leaves, so that it is confirmed. They are
//                                       removed afterwards: `remove_ns` for each, which is not part of the time

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "conntrack/testing/kernel_path.h"

namespace {

using namespace penstock;
using namespace penstock::conntrack;
using Way = KernelPath::Way;
using End = KernelPath::End;

constexpr std::uint8_t kSyn = TcpHeader::kSyn, kAck = TcpHeader::kAck;
constexpr std::uint32_t kFirst = 0x04000400;  // ports
constexpr std::uint32_t kAtOnce = 65'536;     // of new connections

/// Made once for all benches; null: not here.
KernelPath* kernel(benchmark::State& state) {
  static std::string why;
  static const std::unique_ptr<KernelPath> path = KernelPath::make(why);
  if (path == nullptr) {
    state.SkipWithError(why.c_str());
    return nullptr;
  }
  if (path->flush() < 0 || path->connections() != 0) {
    state.SkipWithError("connections cannot be removed");
    return nullptr;
  }
  return path.get();
}

/// Sends the same packets through both; the time that tracking adds.
double added_ns(benchmark::State& state, KernelPath& path, End end, const KernelPath::Round& round, double& untracked) {
  const double without = path.send(Way::untracked, end, round), with = path.send(Way::tracked, end, round);
  if (without < 0 || with < 0) state.SkipWithError("packets cannot be sent");
  untracked += without;
  return with - without;
}

void finish(benchmark::State& state, KernelPath& path, std::size_t per_iteration, std::uint64_t invalid_before,
            double untracked_ns) {
  const auto packets = static_cast<double>(state.iterations()) * static_cast<double>(per_iteration);
  state.SetItemsProcessed(static_cast<std::int64_t>(packets));
  state.counters["untracked_ns"] = untracked_ns / packets;
  state.counters["invalid"] = static_cast<double>(path.invalid() - invalid_before);
}

/// `begin`: the packets that open a connection; `round`: the packet that all connections get in a round.
void measure_known(benchmark::State& state, const std::function<bool(KernelPath&, std::uint32_t)>& begin,
                   const std::function<std::pair<Packet, bool>()>& round) {
  KernelPath* const path = kernel(state);
  if (path == nullptr) return;
  const auto connections = static_cast<std::uint32_t>(state.range(0));
  const std::uint64_t invalid = path->invalid();
  if (!begin(*path, connections) || path->connections() != connections) {
    state.SkipWithError("the kernel has not taken the connections");
    return;
  }
  double untracked = 0;
  for (auto _ : state) {
    const auto [packet, reply] = round();
    const double ns = added_ns(state, *path, End::prerouting, {packet, kFirst, connections, reply}, untracked);
    state.SetIterationTime(std::max(ns, 0.0) * 1e-9);
  }
  finish(state, *path, connections, invalid, untracked);
  state.counters["connections"] = static_cast<double>(path->connections());
}

void kernel_known_tcp(benchmark::State& state) {
  constexpr std::size_t kPayload = 10;
  const Ends ends;
  std::uint32_t turn = 0, server = 1;
  measure_known(
      state,
      [&](KernelPath& path, std::uint32_t count) {
        const Packet packets[]{tcp_packet(ends, {.flags = kSyn}),
                               tcp_packet(ends.reversed(), {.flags = kSyn | kAck, .ack = 1, .window = 65'535}),
                               tcp_packet(ends, {.sequence = 1, .ack = 1, .window = 65'535})};
        for (unsigned i = 0; i < 3; ++i) {
          if (path.send(Way::tracked, End::egress, {packets[i], kFirst, count, i == 1}) < 0) return false;
        }
        return true;
      },
      [&]() -> std::pair<Packet, bool> {
        if (turn++ % 3 == 2) return {tcp_packet(ends, {.sequence = 1, .ack = server, .window = 65'535}), false};
        const std::uint32_t sequence = server;
        server += kPayload;
        return {tcp_packet(ends.reversed(), {.sequence = sequence, .ack = 1, .window = 65'535, .payload = kPayload}),
                true};
      });
}
BENCHMARK(kernel_known_tcp)->ArgName("connections")->Arg(4096)->Arg(65'536)->UseManualTime();

void kernel_known_udp(benchmark::State& state) {
  const Ends ends;
  bool reply = false;
  measure_known(
      state,
      [&](KernelPath& path, std::uint32_t count) {
        return path.send(Way::tracked, End::egress, {udp_packet(ends, 10), kFirst, count, false}) >= 0;
      },
      [&]() -> std::pair<Packet, bool> {
        reply = !reply;
        return {udp_packet(reply ? ends.reversed() : ends, 10), reply};
      });
}
BENCHMARK(kernel_known_udp)->ArgName("connections")->Arg(4096)->Arg(65'536)->UseManualTime();

void measure_new(benchmark::State& state, const Packet& packet) {
  KernelPath* const path = kernel(state);
  if (path == nullptr) return;
  const std::uint64_t invalid = path->invalid();
  double untracked = 0, removed = 0;
  for (auto _ : state) {
    const double ns = added_ns(state, *path, End::egress, {packet, kFirst, kAtOnce, false}, untracked);
    if (path->connections() != kAtOnce) {
      state.SkipWithError("the kernel has not taken the connections");
      return;
    }
    removed += path->flush();
    state.SetIterationTime(std::max(ns, 0.0) * 1e-9);
  }
  finish(state, *path, kAtOnce, invalid, untracked);
  state.counters["remove_ns"] = removed / (static_cast<double>(state.iterations()) * kAtOnce);
}

void kernel_new_tcp(benchmark::State& state) { measure_new(state, tcp_packet({}, {.flags = kSyn})); }
BENCHMARK(kernel_new_tcp)->UseManualTime();

void kernel_new_udp(benchmark::State& state) { measure_new(state, udp_packet({})); }
BENCHMARK(kernel_new_udp)->UseManualTime();

}  // namespace
