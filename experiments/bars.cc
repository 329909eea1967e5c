// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <iterator>
#include <numeric>
#include <queue>
#include <utility>

#include "base/text_file.h"
#include "base/units.h"

namespace penstock::experiments {
namespace {

std::optional<Bar> parse_bar(std::string_view text) {
  const std::vector<Word> words = split_words(text);
  if (words.size() != 3) return std::nullopt;
  const auto begin = parse_number(words[0].text);
  const auto waits = parse_number(words[1].text);
  const auto length = parse_number(words[2].text);
  if (!begin || !waits || !length || !std::isfinite(*begin) || !std::isfinite(*length)) return std::nullopt;
  if (!(*waits >= 0 && *waits <= *length)) return std::nullopt;
  return Bar{*begin, *waits, *length};
}

}  // namespace

std::string bars_text(const std::vector<BarRow>& rows) {
  std::string text;
  for (const BarRow& row : rows) {
    text += (text.empty() ? "" : " | ") + row.name + ':';
    for (const Bar& bar : row.bars) {
      fmt::format_to(std::back_inserter(text), "{} {} {} {}", &bar == row.bars.data() ? "" : ";", bar.begin, bar.waits,
                     bar.length);
    }
  }
  return text;
}

std::optional<std::vector<BarRow>> parse_bars(std::string_view text) {
  std::vector<BarRow> rows;
  if (trimmed(text).empty()) return rows;
  for (const std::string_view part : split(text, '|')) {
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    BarRow& row = rows.emplace_back(BarRow{std::string(trimmed(part.substr(0, colon))), {}});
    const std::string_view bars = part.substr(colon + 1);
    if (trimmed(bars).empty()) continue;
    for (const std::string_view of_bar : split(bars, ';')) {
      const auto bar = parse_bar(of_bar);
      if (!bar) return std::nullopt;
      row.bars.push_back(*bar);
    }
  }
  return rows;
}

std::vector<std::size_t> lanes_of_bars(const std::vector<Bar>& bars) {
  std::vector<std::size_t> order(bars.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return bars[i].begin; });
  using EndAndLane = std::pair<double, std::size_t>;
  std::priority_queue<EndAndLane, std::vector<EndAndLane>, std::greater<>> taken;
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> free;
  std::vector<std::size_t> lanes(bars.size());
  for (const std::size_t i : order) {
    for (; !taken.empty() && taken.top().first <= bars[i].begin; taken.pop()) free.push(taken.top().second);
    lanes[i] = free.empty() ? taken.size() : free.top();
    if (!free.empty()) free.pop();
    taken.emplace(bars[i].begin + bars[i].length, lanes[i]);
  }
  return lanes;
}

}  // namespace penstock::experiments
