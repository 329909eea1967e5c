// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a run's timeline tells of its transfers to the GPUs (Gaviss, figure 10).

#pragma once

#include "experiments/point.h"
#include "ring/timeline.h"

namespace penstock::experiments {

/// Of those that the copy engines did in the middle of what the timeline has, without the beginning and the end of the
/// run. Nothing where there were none.
///
///   transfers_per_ms
///   transfer_bytes         mean
///   transfer_us            mean, from when it was wanted on the device until it had ended
///   waited_us              mean; of it, what another one that was wanted before it was still under way
///   waiting                percent of them that waited at all
///   transfer_us_FUNCTION   as transfer_us, of those of the segment that begins with the function
///   transfers              some two milliseconds of them, as bars (bars.h) with a row for each segment
[[nodiscard]] Point transfers_of(const ring::Timeline& timeline);

}  // namespace penstock::experiments
