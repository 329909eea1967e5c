// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// One panel of curves: converts values to pixels within its frame.

#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "experiments/plot/chart.h"
#include "experiments/plot/page.h"
#include "experiments/plot/plot_data.h"

namespace penstock::experiments {

inline constexpr double kInset = 14;  // between the frame and the outermost marks

/// Converts values to pixels within one frame.
///
///   | numbers                    : imix |
///
class Placement {
 public:
  Placement(const Figure& figure, const PlotData& data, const Box& frame)
      : x_kind_(figure.x.kind), y_kind_(figure.y.kind), data_(data), frame_(frame) {
    const auto categories = static_cast<double>(data.categories.size());
    const double all = frame.width() / std::max(1.0, categories);
    double wide = 44;  // room for the longest name
    for (const std::string& name : data.categories) wide = std::max(wide, text_width(name, 12) + 10);
    slot_ = data.numbers.empty() ? all : std::min(frame.width() * 0.4 / std::max(1.0, categories), wide);
    divider_ = frame.right - slot_ * categories;
  }

  [[nodiscard]] double number(double value) const {
    const double left = frame_.left + kInset;
    return left + data_.x.share_of(place_on(x_kind_, value)) * (divider_ - kInset - left);
  }
  [[nodiscard]] double category(std::size_t index) const {
    return divider_ + slot_ * (static_cast<double>(index) + 0.5);
  }
  [[nodiscard]] double x(const Value& value) const {
    const auto as_number = number_on_axis(value);
    return as_number ? number(*as_number) : category(index_of(data_.categories, to_text(value)));
  }
  /// For a position on the y axis; outside the frame if the value is off the scale.
  [[nodiscard]] double y_of_place(double place) const {
    const double bottom = frame_.bottom - kInset;
    return bottom - data_.y.share_of(place) * (bottom - frame_.top - kInset);
  }
  [[nodiscard]] double y(double value) const { return y_of_place(place_on(y_kind_, value)); }
  [[nodiscard]] Off off(double value) const { return off_scale(y_kind_, data_.y, value); }
  [[nodiscard]] const Box& frame() const { return frame_; }
  [[nodiscard]] double divider() const { return divider_; }
  [[nodiscard]] double slot() const { return slot_; }

 private:
  AxisKind x_kind_, y_kind_;
  const PlotData& data_;
  Box frame_;
  double slot_ = 0, divider_ = 0;
};

/// Draws everything inside the frame. Texts beside it are appended to `notes`, in lines of at most `note_width`.
[[nodiscard]] Panel draw_panel(const Figure& figure, const PlotData& data, const PanelData& panel, const Box& frame,
                               double note_width, std::vector<MarginNote>& notes);

}  // namespace penstock::experiments
