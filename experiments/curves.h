// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A figure's points, put in order: what its table and its plot have in common.

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
  std::vector<std::string> labels;  // one for each key of Figure::series, "" where the points have no such value
  std::vector<CurvePoint> points;   // in the order of x
};

struct Curves {
  std::vector<Value> xs;  // ascending; texts in the order of the points
  std::vector<Curve> series;
  std::vector<Curve> limits;      // equal ones once; labels: the limit's name, and the series' where there are several
  std::size_t without_value = 0;  // points that the figure is of, and that have no number for its y axis
};

/// What a value of a series' key is called: "gpu", "streams=4", "size=1518".
[[nodiscard]] std::string series_label(const std::string& key, const Value& value);

/// The point's value for the figure's y axis.
[[nodiscard]] std::optional<double> y_of(const Figure& figure, const Point& point) noexcept;
[[nodiscard]] Curves curves_of(const Figure& figure, const Record& record);

}  // namespace penstock::experiments
