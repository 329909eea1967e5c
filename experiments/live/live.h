// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The experiment `live`: intrusion detection on a copy of live traffic, in Araujo's arrangement and in ours.

#pragma once

#include "experiments/experiment.h"

namespace penstock::experiments {

[[nodiscard]] const Experiment& live_experiment();

}  // namespace penstock::experiments
