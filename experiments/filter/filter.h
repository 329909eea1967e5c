// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The experiment `filter`: Hung & Guo's tables 3 and 4 and figures 9 to 14. Packets are 16-byte keys, which rules
// filter by linear matching or by RFC, on a GPU with keys and rules in every combination of memories and transfers, and
// on the CPU; and frames, which many BPF filters select at once.

#pragma once

#include "experiments/experiment.h"

namespace penstock::experiments {

[[nodiscard]] const Experiment& filter_experiment();

}  // namespace penstock::experiments
