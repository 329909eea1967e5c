// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/point.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace penstock::experiments {

std::string to_text(const Value& value) {
  if (const bool* const flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const Repeats* const repeats = std::get_if<Repeats>(&value)) return fmt::format("{}", fmt::join(*repeats, ", "));
  if (const double* const number = std::get_if<double>(&value)) {
    constexpr double kExact = 9007199254740992.0;  // 2^53: a double represents every smaller whole number exactly
    const bool whole = std::abs(*number) < kExact && std::trunc(*number) == *number;
    return whole ? fmt::format("{:.0f}", *number + 0.0) : fmt::format("{}", *number);
  }
  return std::get<std::string>(value);
}

void Point::put(std::string_view name, Value value) {
  const auto finite = [](double number) { return std::isfinite(number); };
  if (const double* const number = std::get_if<double>(&value); number != nullptr && !finite(*number)) return;
  if (const Repeats* const repeats = std::get_if<Repeats>(&value);
      repeats != nullptr && !std::all_of(repeats->begin(), repeats->end(), finite)) {
    return;
  }
  const auto there = std::find_if(values_.begin(), values_.end(), [&](const auto& item) { return item.first == name; });
  if (there != values_.end()) {
    there->second = std::move(value);
  } else {
    values_.emplace_back(name, std::move(value));
  }
}

const Value* Point::find(std::string_view name) const noexcept {
  const auto there = std::find_if(values_.begin(), values_.end(), [&](const auto& item) { return item.first == name; });
  return there == values_.end() ? nullptr : &there->second;
}

std::optional<double> Point::number(std::string_view name) const noexcept {
  const Value* const value = find(name);
  const double* const number = value == nullptr ? nullptr : std::get_if<double>(value);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

std::string Point::text(std::string_view name) const {
  const Value* const value = find(name);
  return value == nullptr ? std::string() : to_text(*value);
}

bool satisfies(const Point& point, const std::vector<Condition>& conditions) {
  return std::all_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
    const Value* const value = point.find(condition.key);
    return value != nullptr &&
           std::find(condition.values.begin(), condition.values.end(), to_text(*value)) != condition.values.end();
  });
}

std::string describe(const Point& point) {
  std::string text;
  for (const auto& [name, value] : point) {
    if (!text.empty()) text += ' ';
    text += name + '=' + to_text(value);
  }
  return text;
}

}  // namespace penstock::experiments
