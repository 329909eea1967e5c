// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "chain/cpu_executor.h"

#include <algorithm>
#include <array>
#include <utility>

namespace penstock::chain {

CpuExecutor::CpuExecutor(const Chain& chain, unsigned worker, WorkerCounters& counters, Trace* trace)
    : chain_(chain), trace_(trace), twins_(chain, counters), outlet_(chain, worker, counters) {}

bool CpuExecutor::submit(Batch& batch) noexcept {
  if (done_ != nullptr) return false;
  twins_.begin_batch();
  std::array<PacketView, CpuTwins::kBurst> views;
  for (std::size_t first = 0; first < batch.size(); first += views.size()) {
    const std::size_t count = std::min(views.size(), batch.size() - first);
    for (std::size_t i = 0; i < count; ++i) views[i] = batch.view(first + i);
    const std::span burst = std::span(views).first(count);
    twins_.parse(burst);
    if (trace_ != nullptr && trace_->wants_more()) {
      run_traced(burst, *trace_, twins_, outlet_);
    } else {
      outlet_.send(twins_.run(burst, 0, chain_.functions.size()));
    }
  }
  outlet_.end_batch(batch);
  done_ = &batch;
  return true;
}

Batch* CpuExecutor::retire() noexcept { return std::exchange(done_, nullptr); }

void run_traced(std::span<PacketView> burst, Trace& trace, CpuTwins& twins, Outlet& outlet) noexcept {
  for (PacketView& packet : burst) {
    Trace::Way way = trace.begin(packet);
    const std::span<PacketView> alive = twins.run_traced(packet, way);
    const bool reached_the_end = !alive.empty();
    outlet.send(alive);
    way.end(packet, reached_the_end);
  }
}

}  // namespace penstock::chain
