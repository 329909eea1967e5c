// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Bars along a time axis, as a record's points keep them: one text for all of a point's, of rows that are named. In
// microseconds from where the axis begins: when a bar begins, how long it waits first, and how long it is in all.
//
//   "nids: 12.5 0 84.2; 40.1 56.2 140.3 | router: 310.6 0 84.5"

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::experiments {

struct Bar {
  double begin = 0, waits = 0, length = 0;  // in us, none below 0; it waits for no longer than its length
  friend bool operator==(const Bar&, const Bar&) = default;
};

struct BarRow {
  std::string name;
  std::vector<Bar> bars;
  friend bool operator==(const BarRow&, const BarRow&) = default;
};

/// Names hold neither ':' nor '|'.
[[nodiscard]] std::string bars_text(const std::vector<BarRow>& rows);
/// Nothing where the text is none of bars.
[[nodiscard]] std::optional<std::vector<BarRow>> parse_bars(std::string_view text);

/// In which of a row's lanes, from 0, each bar is drawn, so that none lies on another: in the first that is free where
/// it begins. In the order of the bars.
[[nodiscard]] std::vector<std::size_t> lanes_of_bars(const std::vector<Bar>& bars);

}  // namespace penstock::experiments
