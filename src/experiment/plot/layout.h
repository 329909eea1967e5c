// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The two kinds of plots, laid out: curves in panels with shared axes, and bars in rows along a time axis.

#pragma once

#include "experiment/figure.h"
#include "experiment/plot/chart.h"
#include "experiment/record.h"

namespace penstock::experiment {

/// Every mark lies wholly inside its panel's frame.
[[nodiscard]] Chart curve_chart(const Figure& figure, const Record& record);

/// Of a figure with `bars`.
[[nodiscard]] Chart bar_chart(const Figure& figure, const Record& record);

}  // namespace penstock::experiment
