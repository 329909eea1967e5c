// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What all plots have around their panels: title and legend above, notes below, labels of guides in the margin.

#pragma once

#include <string>
#include <vector>

#include "experiments/plot/chart.h"
#include "experiments/plot/plot_data.h"
#include "experiments/record.h"

namespace penstock::experiments {

inline constexpr double kPageWidth = 860;
inline constexpr double kPageMargin = 12;
inline constexpr double kSmallText = 11;

/// Returns where the next element may begin.
[[nodiscard]] double add_title(Chart& chart, const std::string& title);

struct LegendEntry {
  LegendSample::Of of = LegendSample::Of::curve;
  std::size_t style = 0;
  std::string text;
};

/// In rows from `top`. Returns where the next element may begin.
[[nodiscard]] double add_legend(Chart& chart, const std::vector<LegendEntry>& entries, double top);

/// Adds the notes and the record's origin, and sets the chart's height.
void add_footer(Chart& chart, std::vector<std::string> notes, const Record& record, double top);

/// The label of a guide, or of a reference off the scale.
struct MarginNote {
  Off off = Off::no;
  Pixel end;  // of the guide's line
  std::vector<std::string> lines;
};

inline constexpr double kNoteIndent = 14;  // from the frame to the text

/// Places the notes next to the frame, each as close to its line as the others allow.
void add_margin_notes(Chart& chart, const Box& frame, std::vector<MarginNote> notes);

struct TickLabel {
  double x = 0;
  std::string text;
};

/// The tick labels below the frame. If they do not all fit, every second or fourth of evenly spaced ticks; else the
/// last one and those that fit.
void add_x_labels(Chart& chart, double baseline, const std::vector<TickLabel>& labels);

}  // namespace penstock::experiments
