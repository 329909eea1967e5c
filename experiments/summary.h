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

/// "A CPU, 16 cores, 125.9 GiB; GPU 0: A GPU, driver 580".
[[nodiscard]] std::string machine_text(const Record::Machine& machine);

[[nodiscard]] std::string summary(const Experiment& experiment, const Record& record, Style style);

}  // namespace penstock::experiments
