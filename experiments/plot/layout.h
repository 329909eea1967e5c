// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Lays out the two kinds of plots: curves in panels with shared axes, and bars in rows along a time axis.

#pragma once

#include "experiments/figure.h"
#include "experiments/plot/chart.h"
#include "experiments/record.h"

namespace penstock::experiments {

/// Every mark is completely inside its panel's frame.
[[nodiscard]] Chart curve_chart(const Figure& figure, const Record& record);

/// For a figure with `bars`.
[[nodiscard]] Chart bar_chart(const Figure& figure, const Record& record);

}  // namespace penstock::experiments
