// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How an experiment differs from what its paper did: the table at the top of a page of results.

#pragma once

#include <string>
#include <vector>

#include "experiments/point.h"
#include "experiments/record.h"

namespace penstock::experiments {

struct Difference {
  std::string what;              // "machine", "packets", "what is timed"
  std::string paper, ours, why;  // `ours` may have {machine} for that of the record; the last may be empty
  std::vector<Condition> where;  // shown only for records that have such a point
};

struct Differences {
  std::string paper;  // heading of its column: "Gaviss"
  std::vector<Difference> rows;
};

/// In Markdown.
[[nodiscard]] std::string differences_table(const Differences& differences, const Record& record);

}  // namespace penstock::experiments
