// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The experiment `transfer`: how best to copy packets back if some were dropped (Gaviss §5.6, figure 13), and how best
// to transfer a chain's batches over PCIe: by one copy at a time, by several, or by kernels (Hung & Guo §3.3 and §4.3).

#pragma once

#include "experiments/experiment.h"

namespace penstock::experiments {

[[nodiscard]] const Experiment& transfer_experiment();

}  // namespace penstock::experiments
