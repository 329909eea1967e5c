// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Repeated measurements of one value: the median and the range.

#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/point.h"

namespace penstock::experiments {

struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};

/// `values` must not be empty. For an even number, the median is the mean of the middle two.
[[nodiscard]] inline Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

/// Sets `name` to the median, and `name`_min and `name`_max, which figures draw as error bars.
inline void set_spread(Point& point, std::string_view name, const Spread& spread) {
  point.set(name, spread.median)
      .set(std::string(name) + "_min", spread.min)
      .set(std::string(name) + "_max", spread.max);
}

}  // namespace penstock::experiments
