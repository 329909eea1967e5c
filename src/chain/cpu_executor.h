// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs batches through the CPU twins of a chain, in bursts that stay in the first-level cache: parse, each function in
// turn on what is still alive, then out by the ports. One worker's own.

#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "chain/chain.h"
#include "chain/counters.h"
#include "chain/trace.h"
#include "packet/batch.h"
#include "report/counter.h"
#include "stack/shared_stack.h"

namespace penstock::chain {

class CpuExecutor {
 public:
  /// Borrows all of them. `trace` may be null.
  CpuExecutor(const Chain& chain, unsigned worker, WorkerCounters& counters, Trace* trace);

  /// A batch boundary: functions may take up new tables.
  void begin_batch() noexcept;
  /// Takes every packet of the batch to its end and accounts for it.
  void execute(Batch& batch) noexcept;
  /// No batch comes any more: the stages go, so that no update waits for a batch boundary of theirs.
  void end() noexcept { functions_.clear(); }

 private:
  static constexpr std::size_t kBurst = 128;

  struct Function {
    std::unique_ptr<CpuStage> stage;
    std::string_view name;
    bool changes_shape;
    FrameRoom growth;
  };

  void run_burst(std::span<PacketView> burst) noexcept;
  void run_traced(std::span<PacketView> burst) noexcept;
  /// `bytes`: of the frames of `alive`, and then of what is returned.
  [[nodiscard]] std::span<PacketView> run_function(std::size_t index, std::span<PacketView> alive,
                                                   std::uint64_t& bytes) noexcept;
  std::uint64_t process_and_settle(Function& function, std::span<PacketView> packets) noexcept;
  void send(std::span<PacketView> packets) noexcept;
  void flush(PortIndex port) noexcept;
  void drop(ChainDrop reason, std::uint64_t packets, std::uint64_t bytes) noexcept;
  void send_by(PortIndex port, std::span<const PacketView> packets) noexcept;

  const Chain& chain_;
  WorkerCounters& counters_;
  Trace* trace_;
  stack::SharedStack stack_;
  std::vector<Function> functions_;
  std::vector<port::TxQueue*> exits_;     // by PortIndex; null where the port does not write
  std::vector<report::TrafficSum> sent_;  // by PortIndex, in this batch; forwarded once the port has flushed it
};

}  // namespace penstock::chain
