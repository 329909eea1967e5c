// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The experiment `forwarding`: packets from one interface to another, by Penstock and by Linux itself.

#pragma once

#include "experiments/experiment.h"

namespace penstock::experiments {

[[nodiscard]] const Experiment& forwarding_experiment();

}  // namespace penstock::experiments
