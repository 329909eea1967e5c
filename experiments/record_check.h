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

/// All mistakes: values of the wrong type or outside their range (value_range.h), bars that cannot be read, figures
/// without a value that can be drawn, two points at one place of a figure, points that no figure shows. `file` names
/// the record in errors, and `points[3].gbps` the place in it.
[[nodiscard]] Errors check_record(const Record& record, const Experiment& experiment, const std::string& file);

}  // namespace penstock::experiments
