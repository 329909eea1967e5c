// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Where packets leave the chain: each by the port that a function chose, or that the wiring names, all accounted for.
// One worker's own.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "chain/burst.h"
#include "chain/chain.h"
#include "chain/counters.h"
#include "packet/batch.h"
#include "report/counter.h"

namespace penstock::chain {

class Outlet {
 public:
  /// Borrows both.
  Outlet(const Chain& chain, unsigned worker, WorkerCounters& counters);

  /// Packets that have passed all functions, at most kBurst. Those of a flow stay in order.
  void send(std::span<PacketView> packets) noexcept;
  /// All packets of the batch have been sent or dropped.
  void end_batch(const Batch& batch) noexcept;

 private:
  void send_by(PortIndex port, std::span<const PacketView> packets) noexcept;
  void flush(PortIndex port) noexcept;
  void drop(ChainDrop reason, std::uint64_t packets, std::uint64_t bytes) noexcept;

  const Chain& chain_;
  WorkerCounters& counters_;
  std::vector<port::TxQueue*> exits_;     // by PortIndex; null where the port does not write
  std::vector<report::TrafficSum> sent_;  // by PortIndex, in this batch; forwarded once the port has flushed it
};

}  // namespace penstock::chain
