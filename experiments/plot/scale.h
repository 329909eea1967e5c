// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// One axis of a plot: which values it can show, their positions, and its ticks. Pure.

#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "experiments/figure.h"

namespace penstock::experiments {

/// Whether the axis can show the value: a logarithm exists, or the percentage lies between 0 and 100.
[[nodiscard]] bool can_show(AxisKind kind, double value) noexcept;

/// The value's position, in units in which equal distances are equal in the plot: the value, its logarithm or its
/// logit.
[[nodiscard]] double place_on(AxisKind kind, double value) noexcept;

/// The visible part of an axis, in positions.
struct Range {
  double low = 0, high = 1;

  [[nodiscard]] bool contains(double place) const noexcept { return place >= low && place <= high; }
  /// 0 at the low end, 1 at the high end.
  [[nodiscard]] double share_of(double place) const noexcept;
};

/// A range that contains all values that the axis can show. A linear axis begins at 0, or below if there are negative
/// values; a logarithmic one spans at least a factor of 4.
[[nodiscard]] Range range_of(AxisKind kind, const std::vector<double>& values);

/// The range, extended to include values that are close to it: at most 30 percent of its length beyond.
[[nodiscard]] Range extended_to(const Range& range, AxisKind kind, const std::vector<double>& values);

struct Tick {
  double place = 0;
  std::string label;
};

/// Round values within the range.
[[nodiscard]] std::vector<Tick> ticks_of(AxisKind kind, const Range& range);

/// "65,536", "0.25": numbers as in ticks and labels.
[[nodiscard]] std::string axis_number(double value);

}  // namespace penstock::experiments
