// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The experiment `streams`: functions that process whole payloads, on a GPU with one batch at a time or several at
// once, and on the CPU's cores, as Chaurasia et al. measure IPsec (figure 2a).

#pragma once

#include "experiments/experiment.h"

namespace penstock::experiments {

[[nodiscard]] const Experiment& streams_experiment();

}  // namespace penstock::experiments
