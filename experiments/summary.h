// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The summary above a record's tables: what was measured, where, under which limits, and what is missing.

#pragma once

#include <string>

#include "experiments/experiment.h"
#include "experiments/figure.h"
#include "experiments/record.h"

namespace penstock::experiments {

[[nodiscard]] std::string summary(const Experiment& experiment, const Record& record, Style style);

}  // namespace penstock::experiments
