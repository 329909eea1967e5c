// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/warm_up.h"

#include <algorithm>
#include <array>
#include <thread>

namespace penstock::run {
namespace {

WarmUp take_over(ring::Lane& lane, const plan::DevicePlan& plan, const Batch& batch,
                 Batch::Clock::time_point deadline) noexcept {
  for (std::size_t segment = 0; segment < plan.segments.size(); ++segment) {
    gpu::Progress progress = gpu::Progress::kFailed;
    if (lane.start(batch, segment, {})) {
      while ((progress = lane.progress()) == gpu::Progress::kRunning && Batch::Clock::now() < deadline)
        std::this_thread::yield();
    }
    if (progress == gpu::Progress::kDone) continue;
    if (progress == gpu::Progress::kRunning) return WarmUp::hangs;
    lane.abandon();
    return WarmUp::failed;
  }
  return WarmUp::done;
}

}  // namespace

WarmUp warm_up(std::span<ring::Lane* const> lanes, const plan::DevicePlan& plan, Batch& batch,
               std::chrono::nanoseconds limit) noexcept {
  static constexpr std::array<std::uint8_t, 1514> kFrame{};
  const Batch::Clock::time_point deadline = Batch::Clock::now() + limit;
  WarmUp result = WarmUp::done;
  const auto takes_over = [&](ring::Lane* lane) {
    result = take_over(*lane, plan, batch, deadline);
    // A lane that fails to enqueue in its preferred way uses another way next time.
    if (result == WarmUp::failed) result = take_over(*lane, plan, batch, deadline);
    return result == WarmUp::done;
  };
  for (const ring::BatchSize& size : ring::kBatchOfEachWay) {
    const std::span frame = std::span(kFrame).first(size.frame_bytes);
    // As many packets as fit.
    while (batch.size() < size.packets && batch.append(frame, {0, size.frame_bytes, 0, LinkType::ethernet})) continue;
    const bool good = std::ranges::all_of(lanes, takes_over);
    batch.reset(0);
    if (!good) break;
  }
  return result;
}

}  // namespace penstock::run
