// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "chain/outlet.h"

#include <array>
#include <chrono>
#include <utility>

namespace penstock::chain {

namespace {

using Clock = Batch::Clock;

}  // namespace

Outlet::Outlet(const Chain& chain, unsigned worker, WorkerCounters& counters)
    : chain_(chain), counters_(counters), sent_(chain.ports.size()) {
  for (const NamedPort& p : chain.ports) exits_.push_back(p.port->tx(worker));
}

void Outlet::send(std::span<PacketView> packets) noexcept {
  if (packets.empty()) return;
  const Clock::time_point start = Clock::now();
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
  const auto elapsed = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start);
  counters_.send_time_ns.add(static_cast<std::uint64_t>(elapsed.count()));
}

void Outlet::send_by(PortIndex port, std::span<const PacketView> packets) noexcept {
  const std::uint64_t bytes = frame_bytes(packets);
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

void Outlet::end_batch(const Batch& batch) noexcept {
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

/// The end of a batch for one port: only now is it known what it has brought to its destination.
void Outlet::flush(PortIndex port) noexcept {
  const port::Lost lost = exits_[port]->flush();
  if (lost.packets != 0) drop(ChainDrop::port_refused, lost.packets, lost.bytes);
  const report::TrafficSum sent = std::exchange(sent_[port], {});
  counters_.port_out[port].add(sent.packets - lost.packets, sent.bytes - lost.bytes);
  counters_.forwarded.add(sent.packets - lost.packets, sent.bytes - lost.bytes);
}

void Outlet::drop(ChainDrop reason, std::uint64_t packets, std::uint64_t bytes) noexcept {
  counters_.dropped_by_chain[static_cast<std::size_t>(reason)].add(packets, bytes);
}

}  // namespace penstock::chain
