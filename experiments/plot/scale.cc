// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/plot/scale.h"

#include <fmt/format.h>

#include <cmath>

#include "base/units.h"

namespace penstock::experiments {
namespace {

std::vector<double> places_of(AxisKind kind, const std::vector<double>& values) {
  std::vector<double> places;
  for (const double value : values) {
    if (can_show(kind, value)) places.push_back(place_on(kind, value));
  }
  return places;
}

std::vector<Tick> linear_ticks(const Range& range) {
  constexpr int kMost = 6;
  const double least_step = (range.high - range.low) / kMost;
  if (!std::isfinite(least_step) || least_step < 1e-300) return {};
  const double decade = std::pow(10, std::floor(std::log10(least_step)));
  double step = 10 * decade;
  for (const double factor : {5, 2, 1}) {
    if (factor * decade >= least_step) step = factor * decade;
  }
  std::vector<Tick> ticks;
  const double first = std::ceil(range.low / step);
  for (int i = 0; i <= kMost; ++i) {
    const double value = (first + i) * step;
    if (value > range.high) break;
    ticks.push_back({value, axis_number(std::abs(value) < step / 2 ? 0 : value)});
  }
  return ticks;
}

std::vector<Tick> logarithmic_ticks(const Range& range) {
  constexpr double kMostDecades = 7;
  const double decades = range.high - range.low;
  std::vector<double> factors{1};
  if (decades < 2.5) factors = {1, 2, 5};
  if (decades < 1.2) factors = {1, 2, 3, 5, 7};
  const double stride = std::max(1.0, std::ceil(decades / kMostDecades));
  std::vector<Tick> ticks;
  for (double decade = std::floor(range.low / stride) * stride; decade <= range.high; decade += stride) {
    for (const double factor : factors) {
      const double value = factor * std::pow(10, decade);
      const double place = decade + std::log10(factor);
      if (range.contains(place)) ticks.push_back({place, axis_number(value)});
    }
  }
  return ticks;
}

}  // namespace

bool can_show(AxisKind kind, double value) noexcept {
  if (!std::isfinite(value)) return false;
  if (kind == AxisKind::logarithmic) return value > 0;
  return kind == AxisKind::linear || (value > 0 && value < 100);
}

double place_on(AxisKind kind, double value) noexcept {
  if (kind == AxisKind::logarithmic) return std::log10(value);
  return kind == AxisKind::linear ? value : std::log(value / (100 - value));
}

double Range::share_of(double place) const noexcept {
  const double share = (place / 2 - low / 2) / (high / 2 - low / 2);  // halved so that the difference cannot overflow
  return std::isfinite(share) ? share : 0.5;
}

Range range_of(AxisKind kind, const std::vector<double>& values) {
  std::vector<double> places = places_of(kind, values);
  if (kind == AxisKind::linear) places.push_back(0);
  if (places.empty()) return {};
  const auto [low, high] = std::ranges::minmax(places);
  if (kind == AxisKind::linear) return {low, high > low ? high : low + 1};
  const double least = kind == AxisKind::logarithmic ? std::log10(4) : 1;
  const double missing = std::max(0.0, least - (high - low));
  return {low - missing / 2, high + missing / 2};
}

Range extended_to(const Range& range, AxisKind kind, const std::vector<double>& values) {
  constexpr double kNear = 0.3;
  const double reach = kNear * (range.high - range.low);
  Range extended = range;
  for (const double place : places_of(kind, values)) {
    if (place < range.low - reach || place > range.high + reach) continue;
    extended.low = std::min(extended.low, place);
    extended.high = std::max(extended.high, place);
  }
  return extended;
}

std::vector<Tick> ticks_of(AxisKind kind, const Range& range) {
  if (kind == AxisKind::linear) return linear_ticks(range);
  if (kind == AxisKind::logarithmic) return logarithmic_ticks(range);
  std::vector<Tick> ticks;
  for (const double percent : {0.1, 1., 10., 50., 90., 99., 99.9}) {
    const double place = place_on(kind, percent);
    if (range.contains(place)) ticks.push_back({place, axis_number(percent)});
  }
  return ticks;
}

std::string axis_number(double value) {
  constexpr double kLong = 1e10;
  const bool grouped = value >= 1000 && value < kLong;
  return grouped ? format_count(static_cast<std::uint64_t>(std::llround(value))) : fmt::format("{:.4g}", value);
}

}  // namespace penstock::experiments
