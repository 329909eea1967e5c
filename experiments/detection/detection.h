// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The experiment `detection`: intrusion detection by rules, by frame sizes, and with streams put together.

#pragma once

#include "experiments/experiment.h"

namespace penstock::experiments {

[[nodiscard]] const Experiment& detection_experiment();

}  // namespace penstock::experiments
