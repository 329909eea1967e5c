// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/cpu_executor.h"

#include <utility>

#include "function/burst.h"

namespace penstock::run {

CpuExecutor::CpuExecutor(const Chain& chain, unsigned worker, WorkerCounters& counters, Trace* trace)
    : chain_(chain),
      trace_(trace),
      twins_(chain, {}, worker, counters, emitter_),
      stages_(make_host_stages(chain.functions, nullptr)),
      outlet_(chain, worker, counters) {
  twins_.begin_epoch(*stages_);
  if (!chain.emits()) return;
  emissions_ = chain.make_emissions();
  emitter_.go_into(&emissions_);
}

bool CpuExecutor::submit(Batch& batch) noexcept {
  if (done_ != nullptr) return false;
  twins_.begin_batch();
  function::Emissions* const emissions = emitter_.goes_into();
  if (emissions != nullptr) emissions->begin(batch);
  run_on_twins(batch, {}, twins_, outlet_, emissions, chain_.functions.size(), trace_);
  done_ = &batch;
  return true;
}

Batch* CpuExecutor::retire() noexcept { return std::exchange(done_, nullptr); }

void CpuExecutor::begin_epoch(std::unique_ptr<StageSet> next) noexcept {
  twins_.begin_epoch(*next);
  ended_ = std::exchange(stages_, std::move(next));
}

void CpuExecutor::end() noexcept {
  twins_.end();
  stages_.reset();
}

namespace {

/// One packet at a time, each with its trace.
void run_traced(std::span<PacketView> burst, Trace& trace, CpuTwins& twins, Outlet& outlet,
                function::Emissions* emissions) noexcept {
  for (PacketView& packet : burst) {
    Trace::Way way = trace.begin(packet);
    const std::span<PacketView> alive = twins.run_traced(packet, way);
    const bool reached_the_end = !alive.empty();
    outlet.send(alive, emissions);
    way.end(packet, reached_the_end);
  }
}

}  // namespace

void run_on_twins(Batch& batch, std::span<std::uint8_t* const> frames, CpuTwins& twins, Outlet& outlet,
                  function::Emissions* emissions, std::size_t functions, Trace* trace) noexcept {
  function::for_each_burst(
      batch,
      [&](std::size_t i) {
        return frames.empty() ? batch.view(i) : PacketView{frames[i], &batch.packets()[i]};
      },
      [&](std::span<PacketView> burst) {
        twins.parse(burst);
        if (trace != nullptr && trace->wants_more()) {
          run_traced(burst, *trace, twins, outlet, emissions);
        } else {
          outlet.send(twins.run(burst, 0, functions), emissions);
        }
      });
  outlet.end_batch(batch, emissions);
}

}  // namespace penstock::run
