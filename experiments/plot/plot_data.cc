// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/plot/plot_data.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/units.h"
#include "experiments/plot/style.h"

namespace penstock::experiments {
namespace {

constexpr std::size_t kMostPanels = 12;

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

std::string plain(std::string text) {
  std::ranges::replace(text, '_', ' ');
  std::ranges::replace(text, '=', ' ');
  return text;
}

bool is_constant(const Curve& curve) {
  constexpr double kShown = 1e-3;
  return std::ranges::all_of(curve.points, [&](const CurvePoint& point) {
    return std::abs(point.y.value - curve.points[0].y.value) <= kShown * std::abs(curve.points[0].y.value);
  });
}

/// Removes points that an axis cannot show, and counts them.
void remove_unshowable(const Figure& figure, Curves& curves, std::size_t& removed) {
  const auto unshowable = [&](const CurvePoint& point) {
    const auto x = number_on_axis(curves.xs[point.x]);
    return (x && !can_show(figure.x.kind, *x)) || !can_show(figure.y.kind, point.y.value);
  };
  for (Curve& curve : curves.series) removed += std::erase_if(curve.points, unshowable);
  for (Curve& limit : curves.limits) std::erase_if(limit.points, unshowable);
  const auto none = [](const Curve& curve) { return curve.points.empty(); };
  std::erase_if(curves.series, none);
  std::erase_if(curves.limits, none);
}

void add_names(const PanelData& panel, PlotData& data) {
  for (const Curve& limit : panel.curves.limits) add_once(data.guide_names, guide_name(limit));
  for (const Reference* const reference : panel.references) {
    if (reference->x) {
      add_once(data.reference_names, reference->label);
    } else {
      add_once(data.guide_names, guide_name(*reference));
    }
  }
  for (const Curve& curve : panel.curves.series) add_once(data.curve_names, plain_name(curve.labels));
}

/// Adds the numbers and categories of all points that are drawn.
void add_xs(const PanelData& panel, PlotData& data) {
  for (const Curve& curve : panel.curves.series) {
    for (const CurvePoint& point : curve.points) {
      const Value& x = panel.curves.xs[point.x];
      if (const auto number = number_on_axis(x)) {
        if (std::ranges::find(data.numbers, *number) == data.numbers.end()) data.numbers.push_back(*number);
      } else {
        add_once(data.categories, to_text(x));
      }
    }
  }
}

void find_ranges(const Figure& figure, PlotData& data) {
  std::vector<double> xs = data.numbers;
  std::vector<double> values;
  std::vector<double> others;  // limits and references
  for (const PanelData& panel : data.panels) {
    for (const Curve& curve : panel.curves.series) {
      for (const CurvePoint& point : curve.points) {
        values.insert(values.end(), {point.y.value, std::max(point.y.low, 0.0), point.y.high});
      }
    }
    for (const Curve& limit : panel.curves.limits) {
      for (const CurvePoint& point : limit.points) others.push_back(point.y.value);
    }
    for (const Reference* const reference : panel.references) {
      others.push_back(reference->y);
      if (reference->x) xs.push_back(*reference->x);
    }
  }
  data.y = extended_to(range_of(figure.y.kind, values), figure.y.kind, others);
  std::ranges::sort(data.numbers);
  // The range does not begin at 0: on this axis distances matter, not sizes.
  std::vector<double> places;
  for (const double x : xs) {
    if (can_show(figure.x.kind, x)) places.push_back(place_on(figure.x.kind, x));
  }
  if (!places.empty()) data.x = {std::ranges::min(places), std::ranges::max(places)};
}

}  // namespace

std::optional<double> number_on_axis(const Value& x) {
  if (const auto* const number = std::get_if<double>(&x)) return *number;
  const auto* const text = std::get_if<std::string>(&x);
  const auto number = text == nullptr ? std::nullopt : parse_number(*text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::string plain_name(const std::vector<std::string>& labels) {
  std::string name;
  for (const std::string& label : labels) {
    if (label.empty()) continue;
    if (!name.empty()) name += ", ";
    name += plain(label);
  }
  return name;
}

std::string guide_name(const Curve& limit) {
  const std::string name = plain_name(limit.labels);
  return is_constant(limit) ? name + ": " + axis_number(limit.points[0].y.value) : name;
}

std::string guide_name(const Reference& reference) { return reference.label + ": " + axis_number(reference.y); }

Off off_scale(AxisKind kind, const Range& range, double value) noexcept {
  const double place = place_on(kind, value);
  if (range.contains(place)) return Off::no;
  return place > range.high ? Off::above : Off::below;
}

bool is_off_scale(const Figure& figure, const PlotData& data, const Reference& reference) noexcept {
  return reference.x && off_scale(figure.y.kind, data.y, reference.y) != Off::no;
}

std::string off_scale_name(const Reference& reference) {
  return guide_name(reference) + " at " + axis_number(*reference.x);
}

std::vector<std::string> margin_names(const Figure& figure, const PlotData& data, const PanelData& panel) {
  std::vector<std::string> names;
  for (const Curve& limit : panel.curves.limits) names.push_back(guide_name(limit));
  for (const Reference* const reference : panel.references) {
    if (!reference->x) names.push_back(guide_name(*reference));
    if (is_off_scale(figure, data, *reference)) names.push_back(off_scale_name(*reference));
  }
  return names;
}

std::size_t index_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::size_t>(std::distance(names.begin(), std::ranges::find(names, name)));
}

PlotData plot_data_of(const Figure& figure, const Record& record) {
  PlotData data;
  for (const std::string& value : panel_values(figure, record)) {
    if (data.panels.size() == kMostPanels) {
      ++data.panels_left_out;
      continue;
    }
    PanelData panel;
    panel.curves = curves_of(figure_of_panel(figure, value), record);
    remove_unshowable(figure, panel.curves, data.not_drawn);
    if (panel.curves.series.empty()) continue;
    if (!figure.panels.empty()) panel.title = plain(figure.panels + ": " + value);
    for (const Reference& reference : figure.references) {
      const bool here = reference.panel.empty() || reference.panel == value;
      if (here && can_show(figure.y.kind, reference.y)) panel.references.push_back(&reference);
    }
    add_names(panel, data);
    data.panels.push_back(std::move(panel));
  }
  if (data.curve_names.size() > kMostCurves) {
    data.curves_left_out = data.curve_names.size() - kMostCurves;
    data.curve_names.resize(kMostCurves);
    for (PanelData& panel : data.panels) {
      std::erase_if(panel.curves.series, [&](const Curve& curve) {
        return index_of(data.curve_names, plain_name(curve.labels)) == kMostCurves;
      });
    }
  }
  for (const PanelData& panel : data.panels) add_xs(panel, data);
  find_ranges(figure, data);
  return data;
}

}  // namespace penstock::experiments
