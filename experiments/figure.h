// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A figure of a paper, defined in code: which points it shows, along which axes, beside which limit and which figures
// of the paper. From a record it makes a table, for the terminal or in Markdown, and a plot as SVG. Nothing here
// measures, so kept records render again without the machine that they come from.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "experiments/point.h"
#include "experiments/record.h"

namespace penstock::experiments {

/// Percentiles are spread by their logits: 99 and 99.9 lie as far apart as 90 and 99.
enum class AxisKind : std::uint8_t { linear, logarithmic, percentiles };

struct Axis {
  std::string key;    // of the point's value; x may be a text (a chain's name), y is a number
  std::string label;  // with its unit: "packets in a batch", "million packets/s"
  AxisKind kind = AxisKind::linear;
  std::string earlier_key{};  // of y: what kept records of earlier versions have in its place; believed first
};

/// What bounds the points, drawn as a dashed line with its name: PCIe's rate, for instance.
struct LimitLine {
  enum class Of : std::uint8_t { point, machine };
  std::string label;
  std::string key;  // of the points themselves, or of the record's limits
  Of of = Of::point;
  double scale = 1;  // from the unit of the value to that of the y axis
};

/// What a paper says, with its words or their place as the source. Without x it holds for all of the axis.
struct Reference {
  std::string label;
  double y = 0;
  std::optional<double> x;
  std::string source;
  std::string panel{};  // the panel of the plot that it belongs to; all of them if empty
};

/// Bars along a time axis in place of curves: a figure of x alone, each of which has a text of bars.
struct BarChart {
  std::string key;            // of that text (bars.h)
  std::string legend, waits;  // what a bar is, and what its first part is, in which it waits
  std::vector<Axis> columns;  // of the table, in place of y's
};

struct Figure {
  std::string id;  // of lower-case letters, digits and hyphens: names the plot's file
  std::string title;
  std::vector<Condition> where;  // the points that it shows
  Axis x, y;
  std::vector<std::string> series;  // keys; points that are equal in them make a curve
  std::optional<LimitLine> limit;
  std::vector<Reference> references;
  std::optional<BarChart> bars{};
  std::string panels{};  // one of the series' keys: the plot has a panel for each of its values
};

/// Whether the record has a point for it.
[[nodiscard]] bool has_points(const Figure& figure, const Record& record);

enum class Style : std::uint8_t { terminal, markdown };

/// Title, a table with a row for each x and a column for each series (of bars, for each of their columns), the limit,
/// how near the points came to it, how far repeats lie apart, and the references. Columns that would not fit a
/// terminal's 100 follow in a table below.
[[nodiscard]] std::string table(const Figure& figure, const Record& record, Style style);

/// Whether its plot would show anything: a point, or a bar.
[[nodiscard]] bool has_plot(const Figure& figure, const Record& record);

/// The plot as SVG. The same record always gives the same bytes.
[[nodiscard]] std::string plot_svg(const Figure& figure, const Record& record);

/// Writes FOLDER/EXPERIMENT-FIGURE.svg and returns its path.
[[nodiscard]] Result<std::string> write_plot(const Figure& figure, const Record& record, const std::string& folder);

}  // namespace penstock::experiments
