// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/plot/panel.h"

#include <map>
#include <utility>

namespace penstock::experiments {
namespace {

DrawnCurve drawn(const Curve& curve, const Curves& curves, const AxisKind y_kind, const PlotData& data,
                 const Placement& placement) {
  const std::string name = plain_name(curve.labels);
  DrawnCurve drawn{name, index_of(data.curve_names, name), {}, {}};
  Polyline line;
  for (const CurvePoint& point : curve.points) {
    const Value& x = curves.xs[point.x];
    const double y = placement.y(point.y.value);
    const Pixel at{placement.x(x), y};
    const auto bound = [&](double value) { return can_show(y_kind, value) ? placement.y(value) : y; };
    drawn.marks.push_back({at, std::min(bound(point.y.high), y), std::max(bound(std::max(point.y.low, 0.0)), y)});
    if (number_on_axis(x)) line.push_back(at);
  }
  std::ranges::stable_sort(line, {}, &Pixel::x);
  if (line.size() > 1) drawn.lines.push_back(std::move(line));
  return drawn;
}

/// The parts of the line between the two heights.
std::vector<Polyline> clipped(const Polyline& line, double top, double bottom) {
  std::vector<Polyline> parts;
  for (std::size_t i = 0; i + 1 < line.size(); ++i) {
    const Pixel& from = line[i];
    const Pixel& to = line[i + 1];
    double begin = 0;
    double end = 1;
    const double rise = to.y - from.y;
    for (const auto& [sign, bound] : {std::pair{-1.0, -top}, std::pair{1.0, bottom}}) {
      const double start = sign * from.y - bound;  // > 0: outside
      const double change = sign * rise;
      if (start > 0 && start + change > 0) end = -1;
      if (start > 0 && start + change <= 0) begin = std::max(begin, -start / change);
      if (start <= 0 && start + change > 0) end = std::min(end, -start / change);
    }
    if (begin > end) continue;
    const auto at = [&](double share) { return Pixel{from.x + share * (to.x - from.x), from.y + share * rise}; };
    if (parts.empty() || begin > 0) parts.push_back({at(begin)});
    parts.back().push_back(at(end));
    if (end < 1) parts.emplace_back();
  }
  std::erase_if(parts, [](const Polyline& part) { return part.size() < 2; });
  return parts;
}

/// A guide and the label at its end.
struct LabelledGuide {
  Guide guide;
  Off off = Off::no;
  Pixel end;
};

LabelledGuide level(const std::string& name, double value, bool is_limit, const PlotData& data,
                    const Placement& placement) {
  const Box& frame = placement.frame();
  LabelledGuide level{{name, index_of(data.guide_names, name), is_limit, {}}, placement.off(value), {}};
  if (level.off == Off::no) {
    const double y = placement.y(value);
    level.guide.lines.push_back({{frame.left, y}, {frame.right, y}});
    level.end = {frame.right, y};
  } else {
    level.end = {frame.right, level.off == Off::above ? frame.top : frame.bottom};
  }
  return level;
}

/// A limit that depends on x: a line through the numbers, and a short line at each category.
LabelledGuide varying(const Curve& limit, const Curves& curves, const PlotData& data, const Placement& placement) {
  const Box& frame = placement.frame();
  const std::string name = guide_name(limit);
  LabelledGuide varying{{name, index_of(data.guide_names, name), true, {}}, Off::no, {}};
  Polyline numbers;
  std::vector<Polyline> lines;
  const CurvePoint* last = nullptr;
  double last_x = 0;
  for (const CurvePoint& point : limit.points) {
    const Value& value = curves.xs[point.x];
    const bool is_number = number_on_axis(value).has_value();
    const Pixel at{placement.x(value), placement.y(point.y.value)};
    if (is_number) numbers.push_back(at);
    const double reach = is_number ? 10 : placement.slot() * 0.36;
    if (!is_number || limit.points.size() == 1) lines.push_back({{at.x - reach, at.y}, {at.x + reach, at.y}});
    if (last == nullptr || at.x > last_x) {
      last = &point;
      last_x = at.x;
    }
  }
  std::ranges::stable_sort(numbers, {}, &Pixel::x);
  lines.push_back(std::move(numbers));
  for (const Polyline& line : lines) {
    for (Polyline& part : clipped(line, frame.top, frame.bottom)) varying.guide.lines.push_back(std::move(part));
  }
  varying.off = last == nullptr ? Off::no : placement.off(last->y.value);
  varying.end = {frame.right, varying.off == Off::above ? frame.top : frame.bottom};
  if (varying.off == Off::no && last != nullptr) {
    varying.end = {last_x, placement.y(last->y.value)};
    for (const Polyline& line : varying.guide.lines) {
      if (line.back().x > varying.end.x) varying.end = line.back();
    }
  }
  return varying;
}

std::vector<LabelledGuide> guides_of(const PanelData& panel, const PlotData& data, const Placement& placement) {
  std::vector<LabelledGuide> guides;
  for (const Curve& limit : panel.curves.limits) {
    const std::string name = guide_name(limit);
    const bool is_level = name != plain_name(limit.labels);
    guides.push_back(is_level ? level(name, limit.points[0].y.value, true, data, placement)
                              : varying(limit, panel.curves, data, placement));
  }
  for (const Reference* const reference : panel.references) {
    if (!reference->x) guides.push_back(level(guide_name(*reference), reference->y, false, data, placement));
  }
  return guides;
}

/// The paper's values at some positions of the axis; those off the scale become notes.
std::vector<References> references_of(const Figure& figure, const PanelData& panel, const PlotData& data,
                                      const Placement& placement, std::vector<MarginNote>& notes, double note_width) {
  std::map<std::size_t, References> by_style;
  for (const Reference* const reference : panel.references) {
    if (!reference->x || data.numbers.empty() || !can_show(figure.x.kind, *reference->x)) continue;
    const auto off = placement.off(reference->y);
    if (off != Off::no) {
      const Box& frame = placement.frame();
      notes.push_back({off,
                       {frame.right, off == Off::above ? frame.top : frame.bottom},
                       wrapped_text(off_scale_name(*reference), kSmallText, note_width + 1)});
      continue;
    }
    const std::size_t style = index_of(data.reference_names, reference->label);
    References& drawn = by_style.try_emplace(style, References{reference->label, style, {}}).first->second;
    drawn.marks.push_back({placement.number(*reference->x), placement.y(reference->y)});
  }
  std::vector<References> all;
  all.reserve(by_style.size());
  for (auto& [style, drawn] : by_style) all.push_back(std::move(drawn));
  return all;
}

}  // namespace

Panel draw_panel(const Figure& figure, const PlotData& data, const PanelData& panel, const Box& frame,
                 double note_width, std::vector<MarginNote>& notes) {
  const Placement placement(figure, data, frame);
  Panel drawn_panel;
  drawn_panel.frame = frame;
  for (const Tick& tick : ticks_of(figure.y.kind, data.y)) {
    drawn_panel.y_ticks.push_back(placement.y_of_place(tick.place));
  }
  for (const double number : data.numbers) drawn_panel.x_ticks.push_back(placement.number(number));
  for (std::size_t i = 0; i < data.categories.size(); ++i) drawn_panel.x_ticks.push_back(placement.category(i));
  if (!data.numbers.empty() && !data.categories.empty()) drawn_panel.dividers.push_back(placement.divider());
  for (const Curve& curve : panel.curves.series) {
    drawn_panel.curves.push_back(drawn(curve, panel.curves, figure.y.kind, data, placement));
  }
  drawn_panel.references = references_of(figure, panel, data, placement, notes, note_width);
  for (LabelledGuide& labelled : guides_of(panel, data, placement)) {
    notes.push_back({labelled.off, labelled.end, wrapped_text(labelled.guide.label, kSmallText, note_width + 1)});
    drawn_panel.guides.push_back(std::move(labelled.guide));
  }
  return drawn_panel;
}

}  // namespace penstock::experiments
