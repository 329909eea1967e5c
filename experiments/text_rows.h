// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables that no figure makes, such as those that compare points.

#pragma once

#include <string>
#include <vector>

#include "experiments/figure.h"

namespace penstock::experiments {

using TableRows = std::vector<std::vector<std::string>>;

/// The title and the table. Each row has as many cells as the head. On a terminal, columns whose heading begins with
/// '>' are aligned to the right; the '>' is not printed.
[[nodiscard]] std::string table_of_texts(const std::string& title, const std::vector<std::string>& head,
                                         const TableRows& rows, Style style);

}  // namespace penstock::experiments
