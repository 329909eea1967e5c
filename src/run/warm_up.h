// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sends batches over each lane before the first packets. On first launch, the device loads kernels and the driver
// instantiates graphs; this takes so long that packets would be lost.

#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "packet/batch.h"
#include "plan/device_plan.h"
#include "ring/lane.h"

namespace penstock::run {

enum class WarmUp : std::uint8_t {
  done,
  failed,  // a batch failed on a lane twice in a row
  hangs,   // a batch was still in flight when the time was up; waiting for the device could block forever
};
inline constexpr std::chrono::seconds kMostWarmUp{30};

/// Sends batches of all kinds over each lane, and discards them. `batch` must be in the pinned memory of the ring; it
/// is empty afterwards.
[[nodiscard]] WarmUp warm_up(std::span<ring::Lane* const> lanes, const plan::DevicePlan& plan, Batch& batch,
                             std::chrono::nanoseconds limit = kMostWarmUp) noexcept;

}  // namespace penstock::run
