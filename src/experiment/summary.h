// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What stands above a record's tables: what was measured, where, under which limits, and what is missing.

#pragma once

#include <string>

#include "experiment/experiment.h"
#include "experiment/figure.h"
#include "experiment/record.h"

namespace penstock::experiment {

[[nodiscard]] std::string summary(const Experiment& experiment, const Record& record, Style style);

}  // namespace penstock::experiment
