// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The experiment `offload`: Alonistioti's figures 3 to 6. Routing look-ups and firewall classification on one core, on
// all cores and on a GPU, by batch size, table size and number of streams.

#pragma once

#include "experiments/experiment.h"

namespace penstock::experiments {

[[nodiscard]] const Experiment& offload_experiment();

}  // namespace penstock::experiments
