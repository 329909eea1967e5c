// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A plot as it lies on paper: panels, curves and texts with their places in pixels, from the top left corner. Layout
// makes it from a figure and a record, and SVG is written from it. Both are pure.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/plot/style.h"

namespace penstock::experiments {

struct Pixel {
  double x = 0, y = 0;
};

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;

  [[nodiscard]] double width() const noexcept { return right - left; }
  [[nodiscard]] double height() const noexcept { return bottom - top; }
};

using Polyline = std::vector<Pixel>;

enum class Anchor : std::uint8_t { start, middle, end };

struct Text {
  std::string text;
  Pixel at;  // of the baseline, at the anchor
  Anchor anchor = Anchor::start;
  double size = 12;
  bool bold = false;
  bool upwards = false;  // turned by a quarter, to read from below

  /// What it covers, by an estimate of its width that is rather too large.
  [[nodiscard]] Box box() const noexcept;
};

[[nodiscard]] double text_width(std::string_view text, double size) noexcept;
/// Lines of at most `width` pixels, broken between words; a word that is longer stands alone.
[[nodiscard]] std::vector<std::string> wrapped_text(std::string_view text, double size, double width);

/// A measured point: its place, and the spread of its repeats.
struct Mark {
  Pixel at;
  double top = 0, bottom = 0;  // equal to at.y where there is no spread to see
};

inline constexpr double kMarkRadius = 4.5;
inline constexpr double kReferenceRadius = 6;

struct DrawnCurve {
  std::string label;
  std::size_t style = 0;
  std::vector<Mark> marks;
  std::vector<Polyline> lines;  // through marks of numbers; never to or from one of a category
};

/// A limit, or a paper's value that holds for all of the axis.
struct Guide {
  std::string label;
  std::size_t style = 0;
  bool is_limit = false;
  std::vector<Polyline> lines;  // empty where all of it lies off the scale: its label has an arrow then
};

/// A paper's values at some places of the axis.
struct References {
  std::string label;
  std::size_t style = 0;
  std::vector<Pixel> marks;
};

struct BarBox {
  Box box;
  bool waits = false;
};

struct Panel {
  Box frame;
  std::vector<double> x_ticks, y_ticks;  // pixels along the axes
  std::vector<double> dividers;          // vertical: between numbers and categories
  std::vector<double> bands;             // horizontal: between rows of bars
  std::vector<DrawnCurve> curves;
  std::vector<Guide> guides;
  std::vector<References> references;
  std::vector<BarBox> bars;
};

/// A sample of a curve, of references or of bars, beside its text in the legend.
struct LegendSample {
  enum class Of : std::uint8_t { curve, references, bar, waiting_bar } of = Of::curve;
  std::size_t style = 0;
  Pixel at;  // the middle of its left end
};

inline constexpr double kSampleWidth = 34;

struct Chart {
  double width = 0, height = 0;
  std::string title;
  std::vector<Panel> panels;
  std::vector<LegendSample> legend;
  std::vector<Text> texts;
  std::vector<Polyline> leaders;  // from the end of a guide to its label
  std::vector<Polyline> arrows;   // beside the labels of what lies off the scale; the head is at the end
};

[[nodiscard]] std::string to_svg(const Chart& chart);

}  // namespace penstock::experiments
