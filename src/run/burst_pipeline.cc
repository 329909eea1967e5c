// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/burst_pipeline.h"

#include <algorithm>
#include <thread>

namespace penstock::run {

bool BurstPipeline::suits(const Chain& chain, const CpuTwins& twins) {
  bool any = false;
  for (std::size_t f = 0; f < chain.functions.size(); ++f) {
    const function::NfTraits& traits = chain.functions[f].function->traits();
    if (traits.connections || traits.asks_for_arrivals) return false;
    if (!twins.defers(f)) continue;
    if (plan::arm_of(chain.forks, f)) return false;
    any = true;
  }
  return any;
}

/// The next packets, as a burst of their own. False: there are none.
bool BurstPipeline::fill(Batch& batch, std::size_t& packet) noexcept {
  Burst& burst = bursts_[(first_ + count_) % bursts_.size()];
  burst.count = burst.at = 0;
  burst.begun = false;
  for (; packet < batch.size() && burst.count < kPackets; ++packet) {
    if (batch.packets()[packet].verdict.alive()) burst.views[burst.count++] = batch.view(packet);
  }
  if (burst.count == 0) return false;
  ++count_;
  return true;
}

/// Each as far as possible without waiting. Whether any has moved.
bool BurstPipeline::advance_all() noexcept {
  bool moved = false;
  // No burst goes through a function before those in front of it, nor begins with it before them.
  std::size_t may_finish = functions_;
  std::size_t may_begin = functions_;
  for (std::size_t i = 0; i < count_; ++i) {
    Burst& burst = bursts_[(first_ + i) % bursts_.size()];
    moved |= advance(burst, may_finish, may_begin);
    may_finish = std::min(may_finish, burst.at);
    may_begin = std::min(may_begin, burst.begun ? burst.at + 1 : burst.at);
  }
  return moved;
}

/// Functions below `may_finish` have no bursts in front of this one, and those below `may_begin` have all of them.
bool BurstPipeline::advance(Burst& burst, std::size_t may_finish, std::size_t may_begin) noexcept {
  bool moved = false;
  while (burst.at < functions_) {
    const std::size_t at = burst.at;
    std::span<PacketView> left;
    std::size_t next = at + 1;
    if (burst.begun) {
      if (at >= may_finish || !twins_.is_ready(at)) return moved;
      left = twins_.finish(at, burst.packets());
      burst.begun = false;
      --with_[at];
    } else if (twins_.defers(at)) {
      if (at >= may_begin) return moved;
      if (twins_.begin(at, burst.packets())) {
        burst.begun = moved = true;
        ++with_[at];
        continue;
      }
      if (with_[at] > 0) return moved;
      left = twins_.run_straight(burst.packets(), at, next);
    } else {
      while (next < functions_ && !twins_.defers(next)) ++next;
      if (next > may_finish) return moved;
      left = twins_.run(burst.packets(), at, next);
    }
    moved = true;
    burst.count = left.size();
    burst.at = left.empty() ? functions_ : next;
  }
  return moved;
}

void BurstPipeline::rest(unsigned idle_rounds) noexcept {
  constexpr unsigned kPolls = 256;
  if (idle_rounds > kPolls) std::this_thread::yield();
}

}  // namespace penstock::run
