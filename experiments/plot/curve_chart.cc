// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
//   title
//   legend
//          +--------+ label of   +--------+ label of
//   y axis | panel  | a limit    | panel  | a limit
//          +--------+            +--------+
//            x axis
//   notes

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "experiments/plot/layout.h"
#include "experiments/plot/page.h"
#include "experiments/plot/panel.h"
#include "experiments/plot/plot_data.h"

namespace penstock::experiments {
namespace {

constexpr double kPanelTitle = 20;
constexpr double kXLabels = 18;
constexpr double kRowGap = 10;
constexpr double kColumnGap = 26;

/// Numbers of four digits need no comma on the x axis, where they are mostly frame sizes.
std::string tick_number(double value) {
  std::string text = axis_number(value);
  constexpr std::size_t kFourDigits = 5;
  if (text.size() == kFourDigits) std::erase(text, ',');
  return text;
}

/// The positions of the panels, row by row, with room for labels to the right of columns that have some.
struct Grid {
  std::size_t columns = 1;
  std::vector<Box> frames;
  std::vector<bool> labelled;  // panels without labels share those of the panel to their right
  double note_width = 0;       // of the labels
};

std::size_t columns_for(std::size_t panels) {
  if (panels == 1) return 1;
  return panels == 2 || panels == 4 ? 2 : 3;
}

double height_of_panels(std::size_t panels, std::size_t rows) {
  if (panels == 1) return 380;
  if (rows == 1) return 320;
  return rows == 2 ? 230 : 190;
}

double widest_note(const Figure& figure, const PlotData& data, double most) {
  double width = 0;
  for (const PanelData& panel : data.panels) {
    for (const std::string& name : margin_names(figure, data, panel)) {
      for (const std::string& line : wrapped_text(name, kSmallText, most)) {
        width = std::max(width, text_width(line, kSmallText));
      }
    }
  }
  return width;
}

/// Whether the labels of both panels are the same. Names of limits that vary do not show whether they are equal.
bool same_margin(const Figure& figure, const PlotData& data, const PanelData& one, const PanelData& other) {
  const auto varies = [](const Curve& limit) { return guide_name(limit) == plain_name(limit.labels); };
  return std::ranges::none_of(one.curves.limits, varies) &&
         margin_names(figure, data, one) == margin_names(figure, data, other);
}

Grid grid_of(const Figure& figure, const PlotData& data, Pixel corner) {
  const std::size_t count = data.panels.size();
  Grid grid;
  grid.columns = columns_for(count);
  grid.note_width = widest_note(figure, data, grid.columns == 1 ? 170 : 112);
  std::vector<double> margins(grid.columns);
  for (std::size_t i = 0; i < count; ++i) {
    const bool has_right = i % grid.columns + 1 < grid.columns && i + 1 < count;
    grid.labelled.push_back(!has_right || !same_margin(figure, data, data.panels[i], data.panels[i + 1]));
    if (!grid.labelled[i] || margin_names(figure, data, data.panels[i]).empty()) continue;
    margins[i % grid.columns] = kNoteIndent + grid.note_width;
  }
  const auto columns = static_cast<double>(grid.columns);
  const double between = (columns - 1) * kColumnGap + std::accumulate(margins.begin(), margins.end(), 0.0);
  const double width = (kPageWidth - kPageMargin - corner.x - between) / columns;
  const double height = height_of_panels(count, (count + grid.columns - 1) / grid.columns);
  const double title = data.panels.front().title.empty() ? 4 : kPanelTitle;
  Pixel at{corner.x, corner.y + title};
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0 && i % grid.columns == 0) at = {corner.x, at.y + height + title + kRowGap};
    grid.frames.push_back({at.x, at.y, at.x + width, at.y + height});
    at.x += width + kColumnGap + margins[i % grid.columns];
  }
  return grid;
}

class CurveChart {
 public:
  CurveChart(const Figure& figure, const Record& record)
      : figure_(figure), record_(record), data_(plot_data_of(figure, record)) {}

  Chart make() && {
    double y = add_title(chart_, figure_.title);
    if (data_.empty()) {
      add_footer(chart_, {"No point has a value that these axes can show."}, record_, y);
      return std::move(chart_);
    }
    y = add_legend(chart_, legend(), y);
    y = add_panels(y);
    add_footer(chart_, notes(), record_, y);
    return std::move(chart_);
  }

 private:
  [[nodiscard]] std::vector<LegendEntry> legend() const {
    std::vector<LegendEntry> entries;
    const bool one = data_.curve_names.size() == 1 && data_.curve_names[0].empty();
    for (std::size_t i = 0; i < data_.curve_names.size(); ++i) {
      if (one && data_.reference_names.empty()) break;
      const std::string& name = data_.curve_names[i];
      entries.push_back({LegendSample::Of::curve, i, name.empty() ? "measured" : name});
    }
    for (std::size_t i = 0; i < data_.reference_names.size(); ++i) {
      if (is_drawn(data_.reference_names[i])) {
        entries.push_back({LegendSample::Of::references, i, data_.reference_names[i]});
      }
    }
    return entries;
  }

  /// Whether any of the reference's values has a position on the axes.
  [[nodiscard]] bool is_drawn(const std::string& reference_name) const {
    return std::ranges::any_of(data_.panels, [&](const PanelData& panel) {
      return std::ranges::any_of(panel.references, [&](const Reference* reference) {
        return reference->x && reference->label == reference_name && is_on_axes(*reference);
      });
    });
  }
  [[nodiscard]] bool is_on_axes(const Reference& reference) const {
    return !data_.numbers.empty() && can_show(figure_.x.kind, *reference.x) && !is_off_scale(figure_, data_, reference);
  }

  double add_panels(double top) {
    const std::vector<Tick> ticks = ticks_of(figure_.y.kind, data_.y);
    double tick_width = 0;
    for (const Tick& tick : ticks) tick_width = std::max(tick_width, text_width(tick.label, 12));
    constexpr double kAxisLabel = 26;
    const Grid grid = grid_of(figure_, data_, {kPageMargin + kAxisLabel + tick_width, top});
    for (std::size_t i = 0; i < grid.frames.size(); ++i) {
      add_panel(data_.panels[i], grid.frames[i], grid.labelled[i], grid.note_width);
      if (i % grid.columns == 0) add_y_labels(grid.frames[i], ticks);
      if (i + grid.columns >= grid.frames.size()) add_x_labels(grid.frames[i]);
    }
    const Box& first = grid.frames.front();
    const Pixel end{grid.frames[grid.columns - 1].right, grid.frames.back().bottom};
    const double below = end.y + 2 * kXLabels;
    chart_.texts.push_back(
        {.text = figure_.x.label, .at = {(first.left + end.x) / 2, below}, .anchor = Anchor::middle});
    chart_.texts.push_back({.text = figure_.y.label,
                            .at = {kPageMargin + 11, (first.top + end.y) / 2},
                            .anchor = Anchor::middle,
                            .upwards = true});
    return below + 8;
  }

  void add_panel(const PanelData& data, const Box& frame, bool labelled, double note_width) {
    std::vector<MarginNote> notes;
    chart_.panels.push_back(draw_panel(figure_, data_, data, frame, note_width, notes));
    for (std::size_t c = 0; c < data.curves.series.size(); ++c) {
      const std::vector<CurvePoint>& points = data.curves.series[c].points;
      for (std::size_t i = 0; i < points.size(); ++i) {
        const Mark& mark = chart_.panels.back().curves[c].marks[i];
        if (mark.bottom - mark.top >= 1) (points[i].y.spread == Spread::range ? has_ranges_ : has_intervals_) = true;
      }
    }
    if (labelled) add_margin_notes(chart_, frame, std::move(notes));
    if (!data.title.empty()) {
      chart_.texts.push_back({.text = data.title, .at = {frame.left, frame.top - 6}, .bold = true});
    }
  }

  void add_y_labels(const Box& frame, const std::vector<Tick>& ticks) {
    const Placement placement(figure_, data_, frame);
    for (const Tick& tick : ticks) {
      chart_.texts.push_back(
          {.text = tick.label, .at = {frame.left - 6, placement.y_of_place(tick.place) + 4}, .anchor = Anchor::end});
    }
  }

  void add_x_labels(const Box& frame) {
    const Placement placement(figure_, data_, frame);
    std::vector<TickLabel> numbers;
    std::vector<TickLabel> categories;
    for (const double number : data_.numbers) numbers.push_back({placement.number(number), tick_number(number)});
    for (std::size_t i = 0; i < data_.categories.size(); ++i) {
      categories.push_back({placement.category(i), data_.categories[i]});
    }
    for (const auto& labels : {numbers, categories}) experiments::add_x_labels(chart_, frame.bottom + kXLabels, labels);
  }

  [[nodiscard]] std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    if (!chart_.arrows.empty()) notes.emplace_back("Arrows mark values beyond the scale.");
    const char* const others = has_intervals_ ? "Other vertical bars" : "Vertical bars";
    if (has_intervals_)
      notes.emplace_back("Vertical bars are confidence intervals of 95 % for means or their quotients.");
    if (has_ranges_) notes.push_back(fmt::format("{} span the lowest and the highest of the repeats.", others));
    if (data_.not_drawn > 0)
      notes.push_back(fmt::format("Values of 0 or less, which are not drawn: {}.", data_.not_drawn));
    if (data_.curves_left_out > 0) {
      notes.push_back(fmt::format("More series in the table, which are not drawn: {}.", data_.curves_left_out));
    }
    if (data_.panels_left_out > 0) {
      notes.push_back(fmt::format("More panels in the table, which are not drawn: {}.", data_.panels_left_out));
    }
    return notes;
  }

  const Figure& figure_;
  const Record& record_;
  PlotData data_;
  Chart chart_;
  bool has_ranges_ = false;
  bool has_intervals_ = false;
};

}  // namespace

Chart curve_chart(const Figure& figure, const Record& record) { return CurveChart(figure, record).make(); }

}  // namespace penstock::experiments
