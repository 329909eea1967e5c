// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sends packets out of the chain, each by the port that a function chose or that the wiring names, and counts them.
// Each worker has its own.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "function/burst.h"
#include "function/emitter.h"
#include "packet/batch.h"
#include "report/counter.h"
#include "run/chain.h"
#include "run/counters.h"

namespace penstock::run {

class Outlet {
 public:
  /// Borrows `chain` and `counters`.
  Outlet(const Chain& chain, unsigned worker, WorkerCounters& counters);
  /// Call it once the ports are open, before any packet is sent.
  void connect();

  /// Sends packets that have passed all functions: at most kBurst, in batch order, together with the packets that
  /// functions emitted for them and for earlier packets. `emissions`: null if no function emits packets. Packets of a
  /// flow stay in order.
  void send(std::span<PacketView> packets, function::Emissions* emissions) noexcept;
  /// Called when all packets of the batch have been sent or dropped: sends the remaining emitted packets and flushes
  /// the ports.
  void end_batch(const Batch& batch, function::Emissions* emissions) noexcept;
  /// The same for packets that were held, for which no latency is counted. `packets`: the number of the batch's
  /// packets.
  void end_held(std::size_t packets, function::Emissions* emissions) noexcept;

 private:
  /// Traffic sent to one port in this batch.
  struct Sent {
    report::TrafficSum arrived;
    report::TrafficSum made;  // emitted by functions
  };
  [[nodiscard]] PortIndex exit_of(PacketView packet) const noexcept;
  void send_merged(std::span<const PacketView> packets, function::Emissions& emissions, std::uint32_t end) noexcept;
  void send_burst(std::span<PacketView> packets, const function::Emissions* emissions) noexcept;
  void send_by(PortIndex port, std::span<const PacketView> packets, const function::Emissions* emissions) noexcept;
  void count_latency(const Batch& batch, Batch::Clock::time_point now) noexcept;
  void count_gap(const Batch& batch, Batch::Clock::time_point now) noexcept;
  [[nodiscard]] Batch::Clock::time_point arrival_of(const PacketDescriptor& packet, const Batch::ArrivalMark& mark,
                                                    Batch::Clock::time_point now) const noexcept;
  void flush(PortIndex port) noexcept;
  void drop(ChainDrop reason, const Sent& lost) noexcept;

  const Chain& chain_;
  const unsigned worker_;
  const bool hands_over_;
  WorkerCounters& counters_;
  const Batch::Clock::time_point built_at_ = Batch::Clock::now();
  Batch::Clock::time_point left_at_;   // when the last batch left
  std::vector<port::TxQueue*> exits_;  // by PortIndex; null if the port does not write
  std::vector<Sent> sent_;             // by PortIndex; counted as forwarded when the port is flushed
};

}  // namespace penstock::run
