// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/curves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/units.h"
#include "experiments/repeats.h"

namespace penstock::experiments {
namespace {

std::vector<std::string> labels_of(const Point& point, const std::vector<std::string>& keys) {
  std::vector<std::string> labels;
  for (const std::string& key : keys) {
    const Value* const value = point.find(key);
    labels.push_back(value == nullptr ? "" : series_label(key, *value));
  }
  return labels;
}

struct Shown {
  const Point* point;
  const Value* x;
};

std::vector<Shown> shown_points(const Figure& figure, const Record& record, std::size_t& without_value) {
  std::vector<Shown> shown;
  for (const Point& point : record.points) {
    if (!satisfies(point, figure.where)) continue;
    const Value* const x = point.find(figure.x.key);
    if (x != nullptr && y_of(figure, point)) {
      shown.push_back({&point, x});
    } else {
      ++without_value;
    }
  }
  return shown;
}

double place_of(const Value& x) { return parse_number(to_text(x)).value_or(std::numeric_limits<double>::infinity()); }

Measured exactly(double value) { return {value, value, value}; }

void sort_points(Curve& curve) {
  std::stable_sort(curve.points.begin(), curve.points.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
}

/// Equal within the precision of plots and tables.
bool same_line(const Curve& a, const Curve& b) {
  constexpr double kShown = 1e-3;
  return std::equal(a.points.begin(), a.points.end(), b.points.begin(), b.points.end(),
                    [](const CurvePoint& one, const CurvePoint& other) {
                      return one.x == other.x &&
                             std::abs(one.y.value - other.y.value) <= kShown * std::abs(one.y.value);
                    });
}

void add_limits(const LimitLine& limit, const Record& record, const std::vector<Curve>& of_points, Curves& curves) {
  if (limit.of == LimitLine::Of::machine) {
    const auto rate = record.limits.number(limit.key);
    if (!rate) return;
    Curve& line = curves.limits.emplace_back(Curve{{limit.label}, {}});
    for (std::size_t x = 0; x < curves.xs.size(); ++x) {
      line.points.push_back({x, exactly(*rate * limit.scale)});
    }
    return;
  }
  for (const Curve& curve : of_points) {
    const bool is_new = std::none_of(curves.limits.begin(), curves.limits.end(),
                                     [&](const Curve& other) { return same_line(curve, other); });
    if (!curve.points.empty() && is_new) curves.limits.push_back(curve);
  }
  const bool one = curves.limits.size() == 1;
  for (Curve& line : curves.limits) {
    if (one) line.labels.clear();
    line.labels.insert(line.labels.begin(), limit.label);
  }
}

}  // namespace

std::string series_label(const std::string& key, const Value& value) {
  const auto* const text = std::get_if<std::string>(&value);
  return text != nullptr && !parse_number(*text) ? *text : key + '=' + to_text(value);
}

std::optional<Measured> measured_y(const Figure& figure, const Point& point) {
  const std::string& key = figure.y.key;
  const auto earlier = figure.y.earlier_key.empty() ? std::nullopt : point.number(figure.y.earlier_key);
  const auto value = earlier ? earlier : point.number(key);
  if (!value) return std::nullopt;
  if (!earlier) {
    const Repeats repeats = repeats_of(point, key);
    if (const auto mean = mean_of(repeats))
      return Measured{mean->value, mean->low, mean->high, Spread::mean, repeats.size()};
    const auto low = point.number(key + "_low");
    const auto high = point.number(key + "_high");
    if (low && high) return Measured{*value, *low, *high, Spread::quotient};
  }
  const auto min = point.number(key + "_min");
  const auto max = point.number(key + "_max");
  return Measured{*value, min.value_or(*value), max.value_or(*value), min || max ? Spread::range : Spread::none};
}

std::optional<double> y_of(const Figure& figure, const Point& point) {
  const auto measured = measured_y(figure, point);
  return measured ? std::optional(measured->value) : std::nullopt;
}

Curves curves_of(const Figure& figure, const Record& record) {
  Curves curves;
  const std::vector<Shown> shown = shown_points(figure, record, curves.without_value);
  const bool has_text =
      std::any_of(shown.begin(), shown.end(), [](const Shown& s) { return !std::holds_alternative<double>(*s.x); });
  for (const Shown& s : shown) {
    if (std::find(curves.xs.begin(), curves.xs.end(), *s.x) == curves.xs.end()) curves.xs.push_back(*s.x);
  }
  if (!has_text) {
    std::sort(curves.xs.begin(), curves.xs.end());
  } else {  // numbers, and names such as "imix" in the order of the points
    std::stable_sort(curves.xs.begin(), curves.xs.end(),
                     [](const Value& a, const Value& b) { return place_of(a) < place_of(b); });
  }

  std::map<std::vector<std::string>, std::size_t> number_of;
  std::vector<Curve> limits;  // one per series
  for (const auto& [point, x] : shown) {
    const std::vector<std::string> labels = labels_of(*point, figure.series);
    const auto [there, is_new] = number_of.try_emplace(labels, curves.series.size());
    if (is_new) {
      curves.series.push_back({labels, {}});
      limits.push_back({labels, {}});
    }
    const auto at = static_cast<std::size_t>(std::find(curves.xs.begin(), curves.xs.end(), *x) - curves.xs.begin());
    curves.series[there->second].points.push_back({at, *measured_y(figure, *point)});
    if (!figure.limit || figure.limit->of != LimitLine::Of::point) continue;
    if (const auto rate = point->number(figure.limit->key)) {
      const double limit = *rate * figure.limit->scale;
      limits[there->second].points.push_back({at, exactly(limit)});
    }
  }
  for (Curve& curve : curves.series) sort_points(curve);
  for (Curve& curve : limits) sort_points(curve);
  if (figure.limit) add_limits(*figure.limit, record, limits, curves);
  return curves;
}

std::vector<std::string> panel_values(const Figure& figure, const Record& record) {
  if (figure.panels.empty()) return {""};
  std::vector<std::string> values;
  for (const Point& point : record.points) {
    if (!satisfies(point, figure.where) || !y_of(figure, point) || point.find(figure.x.key) == nullptr) continue;
    const std::string value = point.text(figure.panels);
    if (std::ranges::find(values, value) == values.end()) values.push_back(value);
  }
  return values;
}

Figure figure_of_panel(const Figure& figure, const std::string& value) {
  Figure one = figure;
  if (figure.panels.empty()) return one;
  one.where.push_back({figure.panels, {value}});
  std::erase(one.series, figure.panels);
  return one;
}

}  // namespace penstock::experiments
