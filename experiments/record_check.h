// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks that the figures of an experiment can be made from a record. A record that was edited or damaged is refused
// before anything is printed or written.

#pragma once

#include <string>

#include "base/error.h"
#include "experiments/experiment.h"
#include "experiments/record.h"

namespace penstock::experiments {

/// Returns all mistakes: values of the wrong type or out of range (value_range.h), unreadable bars, figures without a
/// value that can be drawn, two points at one position of a figure, points that no figure shows. Errors name the record
/// as `file`, and the position in it as in `points[3].gbps`.
[[nodiscard]] Errors check_record(const Record& record, const Experiment& experiment, const std::string& file);

}  // namespace penstock::experiments
