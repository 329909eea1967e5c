// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a record of `live` says beyond its figures: the speed-ups of table 2, and the configurations of table 3, each
// also as a chain file.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/experiment.h"

namespace penstock::experiments {

/// The synthetic rules of the experiment.
[[nodiscard]] std::string live_rules();

/// The point of this rate with a mean delay within the bound that loses the fewest packets, counting those that still
/// waited at the end; of equal ones, that with the least use of the CPU. Null: none is within the bound.
[[nodiscard]] const Point* recommended(const Record& record, const std::string& rate, double bound_ms);

/// Tables 2 and 3; "" if the record has no points for them.
[[nodiscard]] std::string live_tables(const Record& record, Style style);

/// The cells of table 3, and the synthetic rules.
[[nodiscard]] std::vector<ChainFile> live_chain_files(const Record& record);

}  // namespace penstock::experiments
