// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Processes batches on the CPU: parses packets, runs each function on those that are still forwarded, and sends the
// rest. Each worker has its own.

#pragma once

#include <memory>
#include <utility>

#include "function/emitter.h"
#include "run/burst_pipeline.h"
#include "run/chain.h"
#include "run/counters.h"
#include "run/cpu_twins.h"
#include "run/epoch.h"
#include "run/executor.h"
#include "run/hand_over.h"
#include "run/outlet.h"
#include "run/taps.h"

namespace penstock::run {

class CpuExecutor final : public Executor {
 public:
  /// Borrows all arguments. `taps` may be null, and `hand_over`: then all packets of a connection come to its worker.
  CpuExecutor(const Chain& chain, unsigned worker, WorkerCounters& counters, Taps* taps, HandOver* hand_over = nullptr);

  /// Processes the whole batch before it returns; the next `retire` returns the batch.
  void begin() noexcept override;
  bool submit(Batch& batch) noexcept override;
  Batch* retire() noexcept override;
  /// Always false: processing starts no later for a full batch, and costs less per packet.
  bool takes_early(const Batch& /*open*/) const noexcept override { return false; }
  void observe(PacketView packet) noexcept override { twins_.observe(packet); }
  void pass_boundary() noexcept override;
  bool holds_packets() const noexcept override { return twins_.holds_packets(); }
  void give_up_held() noexcept override { twins_.give_up_held(outlet_, emitter_.goes_into()); }
  void begin_epoch(std::unique_ptr<StageSet> next) noexcept override;
  std::unique_ptr<StageSet> take_ended() noexcept override { return std::move(ended_); }
  void end() noexcept override;

 private:
  const Chain& chain_;
  const unsigned worker_;
  Taps* taps_;
  HandOver* const hand_over_;
  function::Emissions emissions_;
  function::Emitter emitter_;
  CpuTwins twins_;                           // has the trackers that stages use until they are destroyed
  std::unique_ptr<BurstPipeline> pipeline_;  // null: each burst goes through the chain before the next one
  std::unique_ptr<StageSet> stages_;
  std::unique_ptr<StageSet> ended_;
  Outlet outlet_;
  Batch* done_ = nullptr;
};

}  // namespace penstock::run
