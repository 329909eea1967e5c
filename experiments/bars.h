// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Bars along a time axis, stored in a record's points as one text per point, with named rows. Each bar has its start,
// the time that it waits first, and its whole duration, in microseconds from the start of the axis:
//
//   "nids: 12.5 0 84.2; 40.1 56.2 140.3 | router: 310.6 0 84.5"

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::experiments {

struct Bar {
  double begin = 0, waits = 0, length = 0;  // in us, not negative; waits <= length
  friend bool operator==(const Bar&, const Bar&) = default;
};

struct BarRow {
  std::string name;
  std::vector<Bar> bars;
  friend bool operator==(const BarRow&, const BarRow&) = default;
};

/// Names must not contain ':' or '|'.
[[nodiscard]] std::string bars_text(const std::vector<BarRow>& rows);
/// Returns nothing if the text is not in this format.
[[nodiscard]] std::optional<std::vector<BarRow>> parse_bars(std::string_view text);

/// The lane of each bar in a row, from 0, in the order of the bars: the first lane that is free when the bar begins, so
/// that no bars overlap.
[[nodiscard]] std::vector<std::size_t> lanes_of_bars(const std::vector<Bar>& bars);

}  // namespace penstock::experiments
