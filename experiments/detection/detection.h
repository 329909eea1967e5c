// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The experiment `detection`: intrusion detection by number of rules, by frame size, and with stream reassembly.

#pragma once

#include "experiments/experiment.h"

namespace penstock::experiments {

[[nodiscard]] const Experiment& detection_experiment();

}  // namespace penstock::experiments
