// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether the figures of an experiment can be made from a record. A record that was edited, or damaged, is refused
// before anything is printed or written.

#pragma once

#include <string>

#include "base/error.h"
#include "experiments/experiment.h"
#include "experiments/record.h"

namespace penstock::experiments {

/// All mistakes: values of the wrong type, texts of bars that cannot be read, figures without a value that can be
/// drawn, costs that are not positive, points that no figure shows. `file` names the record in errors.
[[nodiscard]] Errors check_record(const Record& record, const Experiment& experiment, const std::string& file);

}  // namespace penstock::experiments
