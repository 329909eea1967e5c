// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Batches over each lane before the first packets: a device loads kernels, and its driver makes graphs, when they are
// first launched, which takes so long that the first packets would be lost.

#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "packet/batch.h"
#include "plan/device_plan.h"
#include "run/flight.h"

namespace penstock::run {

enum class WarmUp : std::uint8_t {
  done,
  failed,  // a batch did not come back from a lane, nor when it was sent again
  hangs,   // a batch was still on its way when the time was over: the device cannot be waited for any more
};
inline constexpr std::chrono::seconds kMostWarmUp{30};

/// Takes batches of all kinds over each lane, and forgets them. `batch` is of the ring, pinned, and left empty.
[[nodiscard]] WarmUp warm_up(std::span<LaneState> lanes, const plan::DevicePlan& plan, Batch& batch,
                             std::chrono::nanoseconds limit = kMostWarmUp) noexcept;

}  // namespace penstock::run
