// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a plot of curves shows, before its layout: panels, numbers and categories along the x axis, the ranges of both
// axes, and the style of each name. Borrows the figure.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/curves.h"
#include "experiments/figure.h"
#include "experiments/plot/scale.h"

namespace penstock::experiments {

struct PanelData {
  std::string title;  // empty if the plot has no panels
  Curves curves;
  std::vector<const Reference*> references;
};

struct PlotData {
  std::vector<PanelData> panels;
  std::vector<double> numbers;          // along the x axis, ascending
  std::vector<std::string> categories;  // such as imix: next to the numbers, never connected with them
  Range x, y;                           // of the numbers; shared by all panels
  std::vector<std::string> curve_names, guide_names, reference_names;  // the index is the style's
  std::size_t not_drawn = 0;                                           // points that the axes cannot show
  std::size_t panels_left_out = 0, curves_left_out = 0;

  [[nodiscard]] bool empty() const noexcept { return panels.empty(); }
};

[[nodiscard]] PlotData plot_data_of(const Figure& figure, const Record& record);

/// The number on a figure's x axis: a number, or a text such as "1518". Nothing for a category.
[[nodiscard]] std::optional<double> number_on_axis(const Value& x);

/// "gpu, end to end, streams 4".
[[nodiscard]] std::string plain_name(const std::vector<std::string>& labels);

/// "PCIe limit, shared"; "PCIe limit 434" if it is the same for every x.
[[nodiscard]] std::string guide_name(const Curve& limit);
/// "paper, C1 33.8".
[[nodiscard]] std::string guide_name(const Reference& reference);

/// Whether a value is within the range of its axis.
enum class Off : std::uint8_t { no, above, below };
[[nodiscard]] Off off_scale(AxisKind kind, const Range& range, double value) noexcept;

/// A paper's value at one position of the axis that is off the scale. It is shown as a label: "paper: 3.2 at 4".
[[nodiscard]] bool is_off_scale(const Figure& figure, const PlotData& data, const Reference& reference) noexcept;
[[nodiscard]] std::string off_scale_name(const Reference& reference);

/// All labels next to a panel.
[[nodiscard]] std::vector<std::string> margin_names(const Figure& figure, const PlotData& data, const PanelData& panel);

/// The name's position in the list, which determines its style.
[[nodiscard]] std::size_t index_of(const std::vector<std::string>& names, const std::string& name);

}  // namespace penstock::experiments
