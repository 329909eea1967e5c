// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a record of `sharing` says beyond its figures: what the proxy costs, what several tenants gain, who gets what,
// and, as Chaurasia concludes, which scheduler and profile suit which tenants.

#pragma once

#include <string>

#include "experiments/figure.h"
#include "experiments/point.h"
#include "experiments/record.h"

namespace penstock::experiments {

/// Shares hold if no tenant deviates by more.
inline constexpr double kShareTolerancePercent = 5;

/// Of these points, the one of a proxy with the highest combined rate. With `keeps_shares`, of those whose shares hold;
/// if there are none, the one with the smallest error. Null: no point is of a proxy.
[[nodiscard]] const Point* recommended_sharing(const Record& record, const Conditions& where, bool keeps_shares);

/// "" if the record has no points.
[[nodiscard]] std::string sharing_tables(const Record& record, Style style);

}  // namespace penstock::experiments
