// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A plot as drawn: panels, curves and texts with positions in pixels from the top left corner. Layout makes it from a
// figure and a record; SVG is written from it. Both are pure.

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
  bool upwards = false;  // rotated by 90 degrees, read from bottom to top

  /// The area that the text covers, by a generous estimate of its width.
  [[nodiscard]] Box box() const noexcept;
};

[[nodiscard]] double text_width(std::string_view text, double size) noexcept;
/// Breaks the text between words into lines of at most `width` pixels; a longer word gets its own line.
[[nodiscard]] std::vector<std::string> wrapped_text(std::string_view text, double size, double width);

/// A measured point: its position, and the spread of its repeats.
struct Mark {
  Pixel at;
  double top = 0, bottom = 0;  // equal to at.y if no spread is visible
};

inline constexpr double kMarkRadius = 4.5;
inline constexpr double kReferenceRadius = 6;

struct DrawnCurve {
  std::string label;
  std::size_t style = 0;
  std::vector<Mark> marks;
  std::vector<Polyline> lines;  // connect marks of numbers only, not of categories
};

/// A limit, or a value of a paper that holds for the whole axis.
struct Guide {
  std::string label;
  std::size_t style = 0;
  bool is_limit = false;
  std::vector<Polyline> lines;  // empty if it is completely off the scale: its label then has an arrow
};

/// Values of a paper at some positions of the axis.
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

/// A sample of a curve, a reference or a bar, next to its text in the legend.
struct LegendSample {
  enum class Of : std::uint8_t { curve, references, bar, waiting_bar } of = Of::curve;
  std::size_t style = 0;
  Pixel at;  // the middle of its left edge
};

inline constexpr double kSampleWidth = 34;

struct Chart {
  double width = 0, height = 0;
  std::string title;
  std::vector<Panel> panels;
  std::vector<LegendSample> legend;
  std::vector<Text> texts;
  std::vector<Polyline> leaders;  // from the end of a guide to its label
  std::vector<Polyline> arrows;   // next to labels of values off the scale; the head is at the end
};

[[nodiscard]] std::string to_svg(const Chart& chart);

}  // namespace penstock::experiments
