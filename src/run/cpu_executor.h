// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Takes batches through a chain on the CPU: parse, each function in turn on what is still alive, then out. One worker's
// own.

#pragma once

#include "function/emitter.h"
#include "run/chain.h"
#include "run/counters.h"
#include "run/cpu_twins.h"
#include "run/executor.h"
#include "run/outlet.h"
#include "run/trace.h"

namespace penstock::run {

class CpuExecutor final : public Executor {
 public:
  /// Borrows all of them. `trace` may be null.
  CpuExecutor(const Chain& chain, unsigned worker, WorkerCounters& counters, Trace* trace);

  /// The whole way of all its packets: `retire` gives the batch back at once.
  bool submit(Batch& batch) noexcept override;
  Batch* retire() noexcept override;
  /// A larger batch is worked on no sooner than a small one, but with less effort for each packet.
  bool idle() const noexcept override { return false; }
  void observe(PacketView packet) noexcept override { twins_.observe(packet); }
  void pass_boundary() noexcept override { twins_.begin_batch(); }
  void end() noexcept override { twins_.end(); }

 private:
  const Chain& chain_;
  Trace* trace_;
  function::Emissions emissions_;
  function::Emitter emitter_;
  CpuTwins twins_;
  Outlet outlet_;
  Batch* done_ = nullptr;
};

/// The whole way of a batch over the CPU twins, which have begun it, and out; for any executor. `frames`: where the
/// packets' frames are; empty: in the batch. `emissions`: null where no function makes packets. `trace` may be null.
void run_on_twins(Batch& batch, std::span<std::uint8_t* const> frames, CpuTwins& twins, Outlet& outlet,
                  function::Emissions* emissions, std::size_t functions, Trace* trace) noexcept;

}  // namespace penstock::run
