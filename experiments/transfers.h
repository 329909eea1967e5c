// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Statistics of a run's transfers to the GPUs, from its timeline (Gaviss, figure 10).

#pragma once

#include "experiments/point.h"
#include "ring/timeline.h"

namespace penstock::experiments {

/// Considers transfers, by copy engines or by kernels that do nothing else, in the middle of the timeline, without the
/// beginning and the end of the run. Returns nothing if there are none.
///
///   transfers_per_ms
///   transfer_bytes         mean
///   transfer_us            mean, from when it was ready on the device until it ended
///   waited_us              mean part of it during which a transfer that was ready earlier was still under way
///   waiting                percentage of the transfers that waited
///   transfer_us_FUNCTION   transfer_us of the segments that begin with the function; likewise transfer_bytes_FUNCTION
///                          and waited_us_FUNCTION
///   transfer_percent       transfers in both directions, in percent of these and the kernels, each from when it was
///                          ready until it ended
///   transfers              transfers of some two milliseconds, as bars (bars.h) with a row for each segment
[[nodiscard]] Point transfers_of(const ring::Timeline& timeline);

}  // namespace penstock::experiments
