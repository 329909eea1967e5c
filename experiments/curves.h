// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A figure's points in order, for both its table and its plot.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/figure.h"

namespace penstock::experiments {

struct CurvePoint {
  std::size_t x = 0;  // index in Curves::xs
  double y = 0, min = 0, max = 0;
};

struct Curve {
  std::vector<std::string> labels;  // one for each key of Figure::series; "" if the points have no such value
  std::vector<CurvePoint> points;   // in the order of x
};

struct Curves {
  std::vector<Value> xs;  // ascending; texts in the order of the points
  std::vector<Curve> series;
  std::vector<Curve> limits;      // without duplicates; labels: the limit's name, and the series' if there are several
  std::size_t without_value = 0;  // points of the figure that have no number for its y axis
};

/// The label of a series: "gpu", "streams=4", "size=1518".
[[nodiscard]] std::string series_label(const std::string& key, const Value& value);

/// The point's value on the figure's y axis.
[[nodiscard]] std::optional<double> y_of(const Figure& figure, const Point& point) noexcept;
[[nodiscard]] Curves curves_of(const Figure& figure, const Record& record);

}  // namespace penstock::experiments
