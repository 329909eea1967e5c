// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "chain/cpu_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace penstock::chain {

namespace {

using Clock = Batch::Clock;

FieldSet all_reads(const Chain& chain) {
  FieldSet reads;
  for (const NamedFunction& f : chain.functions) reads |= f.function->traits().cpu.reads;
  return reads;
}

std::uint64_t nanoseconds_between(Clock::time_point from, Clock::time_point to) noexcept {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count());
}

std::uint64_t bytes_of(std::span<const PacketView> packets) noexcept {
  std::uint64_t bytes = 0;
  for (const PacketView& packet : packets) bytes += packet.length();
  return bytes;
}

[[noreturn]] void broken_invariant(std::string_view function, const PacketView& packet, const char* what) noexcept {
  fmt::print(stderr, "penstock: {}: {} (packet {} of this worker)\n", function, what, packet.packet->sequence);
  std::abort();
}

/// Splits off what left the chain at this function, and counts it. `bytes` are those of all, and then of what is left.
std::span<PacketView> keep_alive(std::span<PacketView> packets, std::uint8_t index, std::string_view name,
                                 FunctionCounters& counters, std::uint64_t& bytes) noexcept {
  std::size_t alive = 0;
  for (PacketView& packet : packets) {
    Verdict& verdict = packet.packet->verdict;
    verdict.nf = index;
    if (verdict.alive()) {
      packets[alive++] = packet;
      continue;
    }
    const std::uint64_t length = packet.length();
    bytes -= length;
    switch (verdict.kind) {
      case VerdictKind::drop:
        if (verdict.value >= counters.dropped.size())
          broken_invariant(name, packet, "drops for a reason it does not name");
        counters.dropped[verdict.value].add(1, length);
        break;
      case VerdictKind::consume: counters.consumed.add(1, length); break;
      // A punt means "finish on the CPU path": a CPU twin is that path.
      case VerdictKind::punt: broken_invariant(name, packet, "the CPU twin punts");
      case VerdictKind::forward: break;
    }
  }
  return packets.first(alive);
}

}  // namespace

CpuExecutor::CpuExecutor(const Chain& chain, unsigned worker, WorkerCounters& counters, Trace* trace)
    : chain_(chain), counters_(counters), trace_(trace), stack_(all_reads(chain)), sent_(chain.ports.size()) {
  for (const NamedFunction& f : chain.functions) {
    functions_.push_back({f.function->make_cpu_stage(), f.name, f.function->traits().cpu.writes.has(Field::frame_shape),
                          f.function->traits().growth});
  }
  for (const NamedPort& p : chain.ports) exits_.push_back(p.port->tx(worker));
}

void CpuExecutor::begin_batch() noexcept {
  for (Function& function : functions_) function.stage->begin_batch();
}

void CpuExecutor::execute(Batch& batch) noexcept {
  begin_batch();
  std::array<PacketView, kBurst> burst;
  for (std::size_t first = 0; first < batch.size(); first += kBurst) {
    const std::size_t count = std::min(kBurst, batch.size() - first);
    for (std::size_t i = 0; i < count; ++i) burst[i] = batch.view(first + i);
    run_burst(std::span(burst).first(count));
  }
  for (std::size_t p = 0; p < exits_.size(); ++p) {
    if (sent_[p].packets != 0) flush(static_cast<PortIndex>(p));
  }
  const Clock::time_point now = Clock::now();
  std::size_t from = 0;
  for (const Batch::ArrivalMark& mark : batch.arrivals()) {
    counters_.latency.record(now - mark.time, mark.end - from);
    from = mark.end;
  }
}

void CpuExecutor::run_burst(std::span<PacketView> burst) noexcept {
  const Clock::time_point start = Clock::now();
  stack_.prepare(burst);
  if (trace_ != nullptr && trace_->wants_more()) return run_traced(burst);
  Clock::time_point before = Clock::now();
  counters_.stack_time_ns.add(nanoseconds_between(start, before));
  std::span<PacketView> alive = burst;
  std::uint64_t bytes = bytes_of(alive);
  for (std::size_t i = 0; i < functions_.size() && !alive.empty(); ++i) {
    alive = run_function(i, alive, bytes);
    const Clock::time_point after = Clock::now();
    counters_.functions[i].time_ns.add(nanoseconds_between(before, after));
    before = after;
  }
  if (alive.empty()) return;
  send(alive);
  counters_.send_time_ns.add(nanoseconds_between(before, Clock::now()));
}

/// The same, a packet at a time, with the way of each written down.
void CpuExecutor::run_traced(std::span<PacketView> burst) noexcept {
  for (PacketView& packet : burst) {
    Trace::Way way = trace_->begin(packet);
    std::span<PacketView> alive(&packet, 1);
    std::uint64_t bytes = packet.length();
    for (std::size_t i = 0; i < functions_.size() && !alive.empty(); ++i) {
      way.before(chain_.functions[i].function->traits(), *functions_[i].stage, functions_[i].name, packet);
      alive = run_function(i, alive, bytes);
      way.after(packet);
    }
    const bool reached_the_end = !alive.empty();
    if (reached_the_end) send(alive);
    way.end(packet, reached_the_end);
  }
}

std::span<PacketView> CpuExecutor::run_function(std::size_t index, std::span<PacketView> alive,
                                                std::uint64_t& bytes) noexcept {
  Function& function = functions_[index];
  FunctionCounters& counters = counters_.functions[index];
  counters.in.add(alive.size(), bytes);
  if (function.changes_shape) {
    bytes = process_and_settle(function, alive);
  } else {
    function.stage->process(alive);
  }
  const std::span<PacketView> left =
      keep_alive(alive, static_cast<std::uint8_t>(index), function.name, counters, bytes);
  counters.forwarded.add(left.size(), bytes);
  return left;
}

/// Runs a function that may move the bounds of frames, and brings all that depends on them up to date. Returns the
/// bytes of the frames as they are now.
std::uint64_t CpuExecutor::process_and_settle(Function& function, std::span<PacketView> packets) noexcept {
  struct Bounds {
    std::uint8_t* first;
    std::uint32_t length;
  };
  std::array<Bounds, kBurst> before;
  for (std::size_t i = 0; i < packets.size(); ++i) before[i] = {packets[i].frame, packets[i].length()};
  function.stage->process(packets);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    const PacketView& packet = packets[i];
    PacketDescriptor& descriptor = *packet.packet;
    const std::ptrdiff_t head = before[i].first - packet.frame;
    const std::ptrdiff_t tail = packet.frame + descriptor.length - (before[i].first + before[i].length);
    if (head > static_cast<std::ptrdiff_t>(function.growth.head) ||
        tail > static_cast<std::ptrdiff_t>(function.growth.tail)) {
      broken_invariant(function.name, packet, "grows a frame by more than it declares");
    }
    descriptor.offset = static_cast<std::uint32_t>(descriptor.offset - head);
    descriptor.wire_length += descriptor.length - before[i].length;  // modulo 2^32, so that it may shrink
    bytes += descriptor.length;
  }
  stack_.prepare(packets);
  return bytes;
}

void CpuExecutor::send(std::span<PacketView> packets) noexcept {
  // Nearly always all leave by one port; otherwise one pass for each port, which keeps the order of flows.
  std::array<PacketView, kBurst> group;
  std::span<PacketView> rest = packets;
  while (!rest.empty()) {
    const auto exit_of = [&](const PacketView& packet) {
      const PortIndex chosen = packet.packet->verdict.value;
      return chosen != kNoPort ? chosen : chain_.wiring[packet.packet->in_port];
    };
    const PortIndex exit = exit_of(rest.front());
    std::size_t grouped = 0;
    std::size_t left = 0;
    for (const PacketView& packet : rest) {
      if (exit_of(packet) == exit) {
        packet.packet->verdict.value = exit;
        group[grouped++] = packet;
      } else {
        rest[left++] = packet;
      }
    }
    send_by(exit, std::span(group).first(grouped));
    rest = rest.first(left);
  }
}

void CpuExecutor::send_by(PortIndex port, std::span<const PacketView> packets) noexcept {
  const std::uint64_t bytes = bytes_of(packets);
  if (port == kNoPort) return counters_.consumed.add(packets.size(), bytes);
  if (port >= exits_.size() || exits_[port] == nullptr) {
    for (const PacketView& packet : packets) packet.packet->verdict = Verdict::drop(ChainDrop::no_such_exit);
    return drop(ChainDrop::no_such_exit, packets.size(), bytes);
  }
  const std::size_t taken = exits_[port]->send(packets);
  // What a port refuses it marks, so that bytes are counted to the byte.
  std::uint64_t refused_bytes = 0;
  if (taken < packets.size()) {
    for (const PacketView& packet : packets) {
      if (packet.packet->verdict.alive()) continue;
      refused_bytes += packet.length();
      packet.packet->verdict = Verdict::drop(ChainDrop::port_refused);
    }
    drop(ChainDrop::port_refused, packets.size() - taken, refused_bytes);
  }
  sent_[port] += {taken, bytes - refused_bytes};
}

/// The end of a batch for one port: only now is it known what it has brought to its destination.
void CpuExecutor::flush(PortIndex port) noexcept {
  const port::Lost lost = exits_[port]->flush();
  if (lost.packets != 0) drop(ChainDrop::port_refused, lost.packets, lost.bytes);
  const report::TrafficSum sent = std::exchange(sent_[port], {});
  counters_.port_out[port].add(sent.packets - lost.packets, sent.bytes - lost.bytes);
  counters_.forwarded.add(sent.packets - lost.packets, sent.bytes - lost.bytes);
}

void CpuExecutor::drop(ChainDrop reason, std::uint64_t packets, std::uint64_t bytes) noexcept {
  counters_.dropped_by_chain[static_cast<std::size_t>(reason)].add(packets, bytes);
}

}  // namespace penstock::chain
