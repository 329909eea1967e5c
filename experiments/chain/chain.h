// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The experiment `chain`: service chains on the GPU as Gaviss measures them (§5.2 to §5.5): with packets shared on the
// device, with separate transfers for each function, and on the CPU's cores.

#pragma once

#include "experiments/experiment.h"

namespace penstock::experiments {

[[nodiscard]] const Experiment& chain_experiment();

}  // namespace penstock::experiments
