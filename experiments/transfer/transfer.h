// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The experiment `transfer`: what brings packets back best once some are dropped (Gaviss §5.6, figure 13), and how a
// chain's batches cross PCIe best, by one copy at a time, several, or kernels (Hung & Guo §3.3 and §4.3).

#pragma once

#include "experiments/experiment.h"

namespace penstock::experiments {

[[nodiscard]] const Experiment& transfer_experiment();

}  // namespace penstock::experiments
