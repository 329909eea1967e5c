// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <utility>

#include "experiments/bars.h"
#include "experiments/plot/layout.h"
#include "experiments/plot/page.h"
#include "experiments/plot/scale.h"

namespace penstock::experiments {
namespace {

constexpr double kLaneHeight = 22;
constexpr double kRowPadding = 5;
constexpr double kLabelWidth = 170;
constexpr double kInset = 8;

struct Row {
  std::vector<std::string> label;
  std::vector<Bar> bars;
  std::vector<std::size_t> lanes;

  [[nodiscard]] double height() const {
    const auto lane_count = static_cast<double>(lanes.empty() ? 1 : std::ranges::max(lanes) + 1);
    return std::max(lane_count * kLaneHeight, static_cast<double>(label.size()) * 15) + 2 * kRowPadding;
  }
};

std::vector<Row> rows_of(const Figure& figure, const Record& record) {
  std::vector<Row> rows;
  for (const Point& point : record.points) {
    if (!satisfies(point, figure.where)) continue;
    const auto parsed = parse_bars(point.text(figure.bars->key));
    if (!parsed) continue;
    for (const BarRow& row : *parsed) {
      const std::string label = point.text(figure.x.key) + ": " + row.name;
      rows.push_back({wrapped_text(label, 12, kLabelWidth), row.bars, lanes_of_bars(row.bars)});
    }
  }
  return rows;
}

class BarChartLayout {
 public:
  BarChartLayout(const Figure& figure, const Record& record)
      : figure_(figure), record_(record), rows_(rows_of(figure, record)) {
    std::vector<double> times;
    for (const Row& row : rows_) {
      for (const Bar& bar : row.bars) times.insert(times.end(), {bar.begin, bar.begin + bar.length});
    }
    range_ = range_of(AxisKind::linear, times);
  }

  Chart make() && {
    double y = add_title(chart_, figure_.title);
    y = add_legend(
        chart_,
        {{LegendSample::Of::bar, 0, figure_.bars->legend}, {LegendSample::Of::waiting_bar, 0, figure_.bars->waits}}, y);
    y = add_panel(y);
    add_footer(chart_, {}, record_, y);
    return std::move(chart_);
  }

 private:
  double add_panel(double top) {
    Panel& panel = chart_.panels.emplace_back();
    panel.frame = {kPageMargin + kLabelWidth + 8, top, kPageWidth - kPageMargin - 8, top};
    for (const Row& row : rows_) {
      if (panel.frame.bottom > top) panel.bands.push_back(panel.frame.bottom);
      add_row(panel, row, panel.frame.bottom);
      panel.frame.bottom += row.height();
    }
    std::vector<TickLabel> labels;
    for (const Tick& tick : ticks_of(AxisKind::linear, range_)) {
      labels.push_back({x(panel.frame, tick.place), tick.label});
      panel.x_ticks.push_back(labels.back().x);
    }
    add_x_labels(chart_, panel.frame.bottom + 18, labels);
    const double middle = (panel.frame.left + panel.frame.right) / 2;
    chart_.texts.push_back({.text = "microseconds", .at = {middle, panel.frame.bottom + 36}, .anchor = Anchor::middle});
    return panel.frame.bottom + 44;
  }

  void add_row(Panel& panel, const Row& row, double top) {
    double baseline = top + row.height() / 2 - static_cast<double>(row.label.size()) * 7.5 + 11;
    for (const std::string& line : row.label) {
      chart_.texts.push_back({.text = line, .at = {panel.frame.left - 8, baseline}, .anchor = Anchor::end});
      baseline += 15;
    }
    for (std::size_t i = 0; i < row.bars.size(); ++i) {
      const Bar& bar = row.bars[i];
      const double lane = top + kRowPadding + static_cast<double>(row.lanes[i]) * kLaneHeight;
      const auto box = [&](double from, double to) {
        return Box{x(panel.frame, from), lane + 2, x(panel.frame, to), lane + kLaneHeight - 2};
      };
      if (bar.waits > 0) panel.bars.push_back({box(bar.begin, bar.begin + bar.waits), true});
      if (bar.waits < bar.length) panel.bars.push_back({box(bar.begin + bar.waits, bar.begin + bar.length), false});
    }
  }

  [[nodiscard]] double x(const Box& frame, double time) const {
    return frame.left + kInset + range_.share_of(time) * (frame.width() - 2 * kInset);
  }

  const Figure& figure_;
  const Record& record_;
  std::vector<Row> rows_;
  Range range_;
  Chart chart_;
};

}  // namespace

Chart bar_chart(const Figure& figure, const Record& record) { return BarChartLayout(figure, record).make(); }

}  // namespace penstock::experiments
