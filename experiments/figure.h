// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A figure of a paper, defined in code: which points it shows, on which axes, with which limit and which values of the
// paper. From a record it makes a table (for the terminal or in Markdown) and an SVG plot. Nothing here measures, so
// kept records can be rendered on any machine.

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

/// Percentiles are placed by their logits: 99 and 99.9 are as far apart as 90 and 99.
enum class AxisKind : std::uint8_t { linear, logarithmic, percentiles };

struct Axis {
  std::string key;    // name of the point's value; x may be a text (a chain's name), y is a number
  std::string label;  // with its unit: "packets in a batch", "million packets/s"
  AxisKind kind = AxisKind::linear;
  std::string earlier_key{};  // for y: the key in records of earlier versions; it takes precedence
};

/// An upper bound of the points, such as PCIe's rate, drawn as a dashed line with its name.
struct LimitLine {
  enum class Of : std::uint8_t { point, machine };
  std::string label;
  std::string key;  // in the points, or in the record's limits
  Of of = Of::point;
  double scale = 1;  // from the unit of the value to that of the y axis
};

/// A value from a paper, with its wording or place as the source. Without x, it holds for the whole axis.
struct Reference {
  std::string label;
  double y = 0;
  std::optional<double> x;
  std::string source;
  std::string panel{};  // the panel of the plot that it belongs to; empty: all panels
};

/// Bars along a time axis instead of curves: each x of the figure has a text of bars.
struct BarChart {
  std::string key;            // key of that text (bars.h)
  std::string legend, waits;  // what a bar is, and what its first part is, during which it waits
  std::vector<Axis> columns;  // of the table, instead of y
};

struct Figure {
  std::string id;  // lower-case letters, digits and hyphens; part of the plot's file name
  std::string title;
  std::vector<Condition> where;  // selects the points
  Axis x, y;
  std::vector<std::string> series;  // keys; points with equal values form a curve
  std::optional<LimitLine> limit;
  std::vector<Reference> references;
  std::optional<BarChart> bars{};
  std::string panels{};  // one of the series' keys: the plot has a panel for each of its values
};

/// Whether the record has a point of this figure.
[[nodiscard]] bool has_points(const Figure& figure, const Record& record);

enum class Style : std::uint8_t { terminal, markdown };

/// The title; a table with a row for each x and a column for each series (for bars, their columns), or of many series
/// one for each panel; the limit, how close the points came to it, and what is known from repeats; the paper's values.
/// Columns that do not fit a terminal of 100 columns follow in a second table.
[[nodiscard]] std::string table(const Figure& figure, const Record& record, Style style);

/// Whether the plot would show a point or a bar.
[[nodiscard]] bool has_plot(const Figure& figure, const Record& record);

/// The plot as SVG. The same record always gives the same bytes.
[[nodiscard]] std::string plot_svg(const Figure& figure, const Record& record);

/// Writes FOLDER/EXPERIMENT-FIGURE.svg and returns its path.
[[nodiscard]] Result<std::string> write_plot(const Figure& figure, const Record& record, const std::string& folder);

}  // namespace penstock::experiments
