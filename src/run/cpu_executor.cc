// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/cpu_executor.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "function/burst.h"

namespace penstock::run {

CpuExecutor::CpuExecutor(const Chain& chain, unsigned worker, WorkerCounters& counters, Taps* taps, HandOver* hand_over)
    : chain_(chain),
      worker_(worker),
      taps_(taps),
      hand_over_(hand_over),
      twins_(chain, {}, worker, counters, emitter_, 1, taps),
      stages_(make_host_stages(chain.functions, nullptr)),
      outlet_(chain, worker, counters) {
  if (hand_over_ != nullptr) twins_.share_connections(*hand_over_);
  twins_.begin_epoch(*stages_);
  if (BurstPipeline::suits(chain, twins_)) pipeline_ = std::make_unique<BurstPipeline>(twins_, chain.functions.size());
  if (!chain.emits()) return;
  emissions_ = chain.make_emissions();
  emitter_.go_into(&emissions_);
}

namespace {

/// Traced packets go alone, each at its place among the others.
void run_traced(const Chain& chain, std::span<PacketView> burst, const std::shared_ptr<Trace::Session>& trace,
                CpuTwins& twins, Outlet& outlet, function::Emissions* emissions) noexcept {
  std::size_t first = 0;  // of the packets that go together
  const auto send_before = [&](std::size_t end) {
    if (first == end) return;
    const std::span<PacketView> alive = twins.run(burst.subspan(first, end - first), 0, chain.functions.size());
    twins.settle_connections();
    outlet.send(alive, emissions);
  };
  for (std::size_t i = 0; i < burst.size(); ++i) {
    std::optional<TracedWay> way = TracedWay::begin(chain, trace, burst[i]);
    if (!way) continue;
    send_before(i);
    const std::span<PacketView> alive = twins.run_traced(burst[i], *way, 0, chain.functions.size());
    const bool reached_the_end = !alive.empty();
    twins.settle_connections();
    outlet.send(alive, emissions);
    way->end(burst[i], reached_the_end);
    first = i + 1;
  }
  send_before(burst.size());
}

}  // namespace

void CpuExecutor::begin() noexcept {
  outlet_.connect();
  twins_.begin();
}

bool CpuExecutor::submit(Batch& batch) noexcept {
  if (done_ != nullptr) return false;
  pass_boundary();
  function::Emissions* const emissions = emitter_.goes_into();
  if (emissions != nullptr) emissions->begin(batch);
  std::shared_ptr<Trace::Session> trace;
  if (taps_ != nullptr && taps_->trace.wants_more()) trace = taps_->trace.join();
  if (trace == nullptr && pipeline_ != nullptr) {
    pipeline_->run(
        batch, [&](std::span<PacketView> burst) { twins_.parse(burst, true); },
        [&](std::span<PacketView> passed) { outlet_.send(passed, emissions); });
    outlet_.end_batch(batch, emissions);
    done_ = &batch;
    return true;
  }
  function::for_each_burst(
      batch, [&](std::size_t i) { return batch.view(i); },
      [&](std::span<PacketView> burst) {
        twins_.parse(burst, true);
        burst = twins_.keep_own(burst);
        if (burst.empty()) return;
        if (trace != nullptr) {
          run_traced(chain_, burst, trace, twins_, outlet_, emissions);
        } else {
          const std::span<PacketView> alive = twins_.run(burst, 0, chain_.functions.size());
          twins_.settle_connections();
          outlet_.send(alive, emissions);
        }
      });
  outlet_.end_batch(batch, emissions);
  if (hand_over_ != nullptr) hand_over_->wake_others(worker_);
  done_ = &batch;
  return true;
}

/// Held packets go before those that come after them.
void CpuExecutor::pass_boundary() noexcept {
  twins_.begin_batch();
  twins_.pass_held(outlet_, emitter_.goes_into());
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

}  // namespace penstock::run
