// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/outlet.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "run/hand_over.h"

namespace penstock::run {

namespace {

using Clock = Batch::Clock;

}  // namespace

Outlet::Outlet(const Chain& chain, unsigned worker, WorkerCounters& counters)
    : chain_(chain),
      worker_(worker),
      hands_over_(hands_over(chain)),
      counters_(counters),
      exits_(chain.ports.size()),
      sent_(chain.ports.size()) {}

void Outlet::connect() {
  for (std::size_t p = 0; p < exits_.size(); ++p) exits_[p] = chain_.ports[p].port->tx(worker_);
}

PortIndex Outlet::exit_of(PacketView packet) const noexcept {
  const PortIndex chosen = packet.packet->verdict.value;
  return chosen != kNoPort ? chosen : chain_.wiring[packet.packet->in_port];
}

void Outlet::send(std::span<PacketView> packets, function::Emissions* emissions) noexcept {
  if (packets.empty()) return;
  if (emissions == nullptr || emissions->none_left()) return send_burst(packets, nullptr);
  send_merged(packets, *emissions, 0);
}

/// Sends packets, each followed directly by what functions emitted for it; what they emitted for packets that do not
/// leave takes those packets' places. Finally sends what was emitted for packets before `end`.
void Outlet::send_merged(std::span<const PacketView> packets, function::Emissions& emissions,
                         std::uint32_t end) noexcept {
  std::array<PacketView, function::kBurst> burst;
  std::size_t count = 0;
  const auto put = [&](PacketView packet) {
    burst[count++] = packet;
    if (count == function::kBurst) send_burst(std::span(burst).first(std::exchange(count, 0)), &emissions);
  };
  // A packet emitted without a port uses its cause's port. If the cause does not leave, neither does the packet.
  const auto put_made_before = [&](std::uint32_t cause) {
    while (!emissions.none_left() && emissions.next_cause() < cause) {
      const PacketView made = emissions.take();
      if (made.packet->verdict.value != kNoPort) put(made);
    }
  };
  emissions.arrange();
  for (const PacketView& packet : packets) {
    const std::uint32_t cause = emissions.index_of(*packet.packet);
    const PortIndex exit = exit_of(packet);
    put_made_before(cause);
    put(packet);
    while (!emissions.none_left() && emissions.next_cause() == cause) {
      const PacketView made = emissions.take();
      PortIndex& out = made.packet->verdict.value;
      if (out == kNoPort) out = exit;
      if (out != kNoPort) put(made);
    }
  }
  put_made_before(end);
  if (count > 0) send_burst(std::span(burst).first(count), &emissions);
}

void Outlet::send_burst(std::span<PacketView> packets, const function::Emissions* emissions) noexcept {
  const Clock::time_point start = Clock::now();
  // Nearly always, all packets leave by one port. Otherwise there is one pass for each port, which keeps flows in
  // order.
  const PortIndex first = exit_of(packets.front());
  bool all_by_the_first = true;
  for (const PacketView& packet : packets) {
    const PortIndex exit = exit_of(packet);
    packet.packet->verdict.value = exit;
    all_by_the_first &= exit == first;
  }
  std::array<PacketView, function::kBurst> group;
  std::span<PacketView> rest = packets;
  if (all_by_the_first) {
    send_by(first, packets, emissions);
    rest = {};
  }
  while (!rest.empty()) {
    const PortIndex exit = rest.front().packet->verdict.value;
    std::size_t grouped = 0;
    std::size_t left = 0;
    for (const PacketView& packet : rest) {
      if (packet.packet->verdict.value == exit) {
        group[grouped++] = packet;
      } else {
        rest[left++] = packet;
      }
    }
    send_by(exit, std::span(group).first(grouped), emissions);
    rest = rest.first(left);
  }
  const auto elapsed = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start);
  counters_.send_time_ns.add(static_cast<std::uint64_t>(elapsed.count()));
}

void Outlet::send_by(PortIndex port, std::span<const PacketView> packets,
                     const function::Emissions* emissions) noexcept {
  Sent sent;
  const auto add = [&](Sent& to, const PacketView& packet) {
    (emissions != nullptr && emissions->made(packet) ? to.made : to.arrived) += {1, packet.length()};
  };
  if (emissions == nullptr) {
    sent.arrived = {packets.size(), function::frame_bytes(packets)};
  } else {
    for (const PacketView& packet : packets) add(sent, packet);
  }
  if (port == kNoPort) return counters_.consumed.add(sent.arrived.packets, sent.arrived.bytes);
  if (port >= exits_.size() || exits_[port] == nullptr) {
    for (const PacketView& packet : packets) packet.packet->verdict = Verdict::drop(ChainDrop::no_such_exit);
    return drop(ChainDrop::no_such_exit, sent);
  }
  // The port marks the packets that it refuses, so that their exact bytes are counted.
  if (exits_[port]->send(packets) < packets.size()) {
    Sent refused;
    for (const PacketView& packet : packets) {
      if (packet.packet->verdict.alive()) continue;
      add(refused, packet);
      packet.packet->verdict = Verdict::drop(ChainDrop::port_refused);
    }
    drop(ChainDrop::port_refused, refused);
    sent.arrived -= refused.arrived;
    sent.made -= refused.made;
  }
  sent_[port].arrived += sent.arrived;
  sent_[port].made += sent.made;
}

void Outlet::end_held(std::size_t packets, function::Emissions* emissions) noexcept {
  if (emissions != nullptr && !emissions->none_left()) send_merged({}, *emissions, static_cast<std::uint32_t>(packets));
  for (std::size_t p = 0; p < exits_.size(); ++p) {
    if (sent_[p].arrived.packets + sent_[p].made.packets != 0) flush(static_cast<PortIndex>(p));
  }
}

void Outlet::end_batch(const Batch& batch, function::Emissions* emissions) noexcept {
  end_held(batch.size(), emissions);
  const Clock::time_point now = Clock::now();
  count_gap(batch, now);
  count_latency(batch, now);
}

/// How long nothing has left although packets were there: since the previous batch left or, if that was later, since
/// the batch's first packet arrived.
void Outlet::count_gap(const Batch& batch, Clock::time_point now) noexcept {
  if (batch.empty()) return;
  const Clock::time_point arrival = arrival_of(batch.packets().front(), batch.arrivals().front(), now);
  counters_.gaps.record(now - std::max(arrival, std::exchange(left_at_, now)));
}

/// Not of packets that go on in other workers.
void Outlet::count_latency(const Batch& batch, Clock::time_point now) noexcept {
  std::size_t from = 0;
  for (const Batch::ArrivalMark& mark : batch.arrivals()) {
    const bool differ = mark.to_clock || hands_over_;
    if (!differ) counters_.latency.record(now - mark.time, mark.end - from);
    for (std::size_t i = from; differ && i < mark.end; ++i) {
      const PacketDescriptor& packet = batch.packets()[i];
      if (packet.verdict.kind != VerdictKind::punt) counters_.latency.record(now - arrival_of(packet, mark, now));
    }
    from = mark.end;
  }
}

/// The packet's timestamp if timestamps are arrival times, else the time of the poll. A timestamp from before the chain
/// was built (such as in a capture read from a pipe) or in the future is not an arrival time.
Clock::time_point Outlet::arrival_of(const PacketDescriptor& packet, const Batch::ArrivalMark& mark,
                                     Clock::time_point now) const noexcept {
  if (!mark.to_clock) return mark.time;
  const std::chrono::nanoseconds time{static_cast<std::int64_t>(packet.timestamp_ns)};
  const Clock::time_point arrival{time + *mark.to_clock};
  return arrival < built_at_ || arrival > now ? mark.time : arrival;
}

/// At the end of a batch: only now is it known what reached the port's destination. Lost packets are taken to be
/// received ones first, and emitted ones only beyond that.
void Outlet::flush(PortIndex port) noexcept {
  const port::Lost lost = exits_[port]->flush();
  const Sent sent = std::exchange(sent_[port], {});
  const report::TrafficSum arrived{std::min(lost.packets, sent.arrived.packets),
                                   std::min(lost.bytes, sent.arrived.bytes)};
  const report::TrafficSum made{lost.packets - arrived.packets, lost.bytes - arrived.bytes};
  if (lost.packets != 0) drop(ChainDrop::port_refused, {arrived, made});
  counters_.port_out[port].add(sent.arrived.packets + sent.made.packets - lost.packets,
                               sent.arrived.bytes + sent.made.bytes - lost.bytes);
  counters_.forwarded.add(sent.arrived.packets - arrived.packets, sent.arrived.bytes - arrived.bytes);
  if (sent.made.packets != 0) counters_.generated.add(sent.made.packets - made.packets, sent.made.bytes - made.bytes);
}

void Outlet::drop(ChainDrop reason, const Sent& lost) noexcept {
  counters_.dropped_by_chain[static_cast<std::size_t>(reason)].add(lost.arrived.packets, lost.arrived.bytes);
  if (lost.made.packets != 0) counters_.generated_lost.add(lost.made.packets, lost.made.bytes);
}

}  // namespace penstock::run
