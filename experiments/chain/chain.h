// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The experiment `chain`: service chains on the GPU as Gaviss measures them (§5.2 to §5.5): with packets shared on the
// device, with separate transfers for each function, and on the CPU's cores.

#pragma once

#include "experiments/experiment.h"
#include "experiments/point.h"
#include "experiments/repeats.h"

namespace penstock::experiments {

/// The mean time of a batch to the GPU and back in microseconds: in the slowest function, or if `functions` share their
/// packets, a function's part of it. For each repeat; none if the point has no times.
[[nodiscard]] Repeats times_of_function_us(const Point& point);

[[nodiscard]] const Experiment& chain_experiment();

}  // namespace penstock::experiments
