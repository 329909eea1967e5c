// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The two kinds of plots, laid out: curves in panels with shared axes, and bars in rows along a time axis.

#pragma once

#include "experiments/figure.h"
#include "experiments/plot/chart.h"
#include "experiments/record.h"

namespace penstock::experiments {

/// Every mark lies wholly inside its panel's frame.
[[nodiscard]] Chart curve_chart(const Figure& figure, const Record& record);

/// Of a figure with `bars`.
[[nodiscard]] Chart bar_chart(const Figure& figure, const Record& record);

}  // namespace penstock::experiments
