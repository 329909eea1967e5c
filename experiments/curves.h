// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A figure's points in order, for both its table and its plot.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/figure.h"

namespace penstock::experiments {

/// What is known of a measured value beyond the value itself.
enum class Spread : std::uint8_t {
  none,
  range,     // the median, the lowest and the highest of the repeats
  mean,      // the mean of the repeats and its confidence interval of 95 percent
  quotient,  // a quotient of means, likewise
};

struct Measured {
  double value = 0, low = 0, high = 0;
  Spread spread = Spread::none;
  std::size_t repeats = 0;  // of a mean
};

struct CurvePoint {
  std::size_t x = 0;  // index in Curves::xs
  Measured y;
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

/// The point's value on the figure's y axis: of repeats the mean, if the record has them all, or else what it has.
[[nodiscard]] std::optional<Measured> measured_y(const Figure& figure, const Point& point);
[[nodiscard]] std::optional<double> y_of(const Figure& figure, const Point& point);
[[nodiscard]] Curves curves_of(const Figure& figure, const Record& record);

/// The values of Figure::panels that the record has, in its order; {""} if the figure has no panels.
[[nodiscard]] std::vector<std::string> panel_values(const Figure& figure, const Record& record);
/// The figure reduced to one panel.
[[nodiscard]] Figure figure_of_panel(const Figure& figure, const std::string& value);

}  // namespace penstock::experiments
