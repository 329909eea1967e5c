// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/record_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "base/error_list.h"
#include "experiments/bars.h"
#include "experiments/curves.h"
#include "experiments/value_range.h"

namespace penstock::experiments {
namespace {

constexpr std::size_t kShownBytes = 80;
constexpr double kMostMicroseconds = 1e15;
constexpr const char* kBarsExpected = "bars such as 'nids: 12.5 0 84.2; 40.1 56.2 140.3 | router: 310.6 0 84.5'";

bool are_bars(const Value& value) {
  const auto* const text = std::get_if<std::string>(&value);
  const auto rows = text == nullptr ? std::nullopt : parse_bars(*text);
  const auto is_right = [](const Bar& bar) {
    return bar.begin >= 0 && bar.begin <= kMostMicroseconds && bar.length <= kMostMicroseconds;
  };
  return rows && std::ranges::all_of(*rows, [&](const BarRow& row) { return std::ranges::all_of(row.bars, is_right); });
}

class Check {
 public:
  Check(const Record& record, const std::string& file) : record_(record), file_(file) {}

  void limits() {
    for (const auto& [key, value] : record_.limits) {
      if (const auto expected = expected_of_limits(value)) wrong_value("limits." + key, value, *expected);
    }
  }

  void remarks(const Experiment& experiment) {
    for (std::size_t i = 0; i < record_.remarks.size(); ++i) {
      const std::string& id = record_.remarks[i].figure;
      if (std::ranges::find(experiment.figures(), id, &Figure::id) == experiment.figures().end())
        error(fmt::format("remarks[{}].figure: unknown figure", i), in_quotes(id.substr(0, kShownBytes)),
              fmt::format("one of the experiment {}", experiment.name));
    }
  }

  /// Checks each value by itself, whether a figure shows it or not.
  void points() {
    for (std::size_t i = 0; i < record_.points.size(); ++i) {
      for (const auto& [key, value] : record_.points[i]) {
        if (const auto expected = expected_of_point(key, value)) wrong(i, key, value, *expected);
        same_type(i, key, value);
        spread(i, key);
      }
    }
  }

  /// Checks the types of all values that the figure uses.
  void types(const Figure& figure) {
    for (std::size_t i = 0; i < record_.points.size(); ++i) {
      if (satisfies(record_.points[i], figure.where)) types(figure, i);
    }
  }

  void figure(const Figure& figure) {
    std::size_t with_value = 0;
    std::size_t drawable = 0;
    std::string last;
    std::map<std::string, std::size_t> places;
    for (std::size_t i = 0; i < record_.points.size(); ++i) {
      const Point& point = record_.points[i];
      if (!satisfies(point, figure.where)) continue;
      const auto y = y_of(figure, point);
      if (!y) continue;
      used_ = true;
      only_one(places, figure, i);
      if (is_wrong(i, figure.y.key) || is_wrong(i, figure.y.earlier_key)) continue;
      ++with_value;
      last = to_text(*y);
      if (can_be_drawn(figure, point, *y)) ++drawable;
    }
    if (with_value == 0 || drawable > 0) return;
    error(fmt::format("figure {}: no value of {} can be drawn", figure.id, figure.y.key), last,
          figure.y.kind == AxisKind::logarithmic ? "numbers above 0, for a logarithmic axis" : "numbers of 0 or more");
  }

  Errors take() && {
    if (errors_.empty() && !used_ && !record_.points.empty()) {
      error("no point belongs to a figure", describe(record_.points.front()).substr(0, kShownBytes),
            fmt::format("points of the experiment {}", record_.experiment));
    }
    return errors_.empty() ? Errors() : std::move(errors_).take({file_, 0, 0});
  }

 private:
  static bool can_be_drawn(const Figure& figure, const Point& point, double y) {
    const auto x = point.number(figure.x.key);
    if (figure.x.kind == AxisKind::logarithmic && x && *x <= 0) return false;
    return figure.y.kind == AxisKind::logarithmic ? y > 0 : y >= 0;
  }

  void types(const Figure& figure, std::size_t index) {
    for (const std::string& key : {figure.y.key, figure.y.key + "_min", figure.y.key + "_max", figure.y.key + "_low",
                                   figure.y.key + "_high", figure.y.earlier_key}) {
      number(index, key);
    }
    if (figure.limit && figure.limit->of == LimitLine::Of::point) number(index, figure.limit->key);
    if (!figure.bars) return;
    for (const Axis& column : figure.bars->columns) number(index, column.key);
    const Value* const bars = record_.points[index].find(figure.bars->key);
    if (bars != nullptr && !are_bars(*bars)) wrong(index, figure.bars->key, *bars, kBarsExpected);
  }

  void number(std::size_t index, const std::string& key) {
    const Value* const value = record_.points[index].find(key);
    if (value != nullptr && !std::holds_alternative<double>(*value)) wrong(index, key, *value, "a number");
  }

  /// A value that is a number in one point must not be a text in another.
  void same_type(std::size_t index, const std::string& key, const Value& value) {
    if (is_wrong(index, key)) return;
    const auto [first, is_new] = type_of_.try_emplace(key, value.index(), index);
    const auto& [type, where] = first->second;
    if (is_new || type == value.index()) return;
    const char* const names[] = {"true or false", "a number", "text", "a list of numbers"};
    wrong(index, key, value, fmt::format("{}, as in points[{}]", names[type], where));
  }

  /// The bounds of X, if it has some, must enclose it, and so must its repeats.
  void spread(std::size_t index, const std::string& key) {
    const Point& point = record_.points[index];
    const auto value = point.number(key);
    if (!value) return;
    for (const char* const bound : {"_min", "_low"}) {
      const auto low = point.number(key + bound);
      if (low && *low > *value)
        wrong(index, key + bound, *point.find(key + bound), fmt::format("at most {} ({})", key, to_text(*value)));
    }
    for (const char* const bound : {"_max", "_high"}) {
      const auto high = point.number(key + bound);
      if (high && *high < *value)
        wrong(index, key + bound, *point.find(key + bound), fmt::format("at least {} ({})", key, to_text(*value)));
    }
    const Value* const list = point.find(key + "_repeats");
    const auto* const repeats = list == nullptr ? nullptr : std::get_if<Repeats>(list);
    if (repeats == nullptr || repeats->empty()) return;
    const auto [least, most] = std::ranges::minmax(*repeats);
    if (*value < least || *value > most)
      wrong(index, key + "_repeats", *list, fmt::format("values on both sides of {} ({})", key, to_text(*value)));
  }

  /// A series must have one point per x. With two, the reader cannot know which one is right.
  void only_one(std::map<std::string, std::size_t>& places, const Figure& figure, std::size_t index) {
    const Point& point = record_.points[index];
    std::string where;
    for (const std::string& key : figure.series) {
      if (point.find(key) != nullptr) where += key + '=' + point.text(key) + ' ';
    }
    where += figure.x.key + '=' + point.text(figure.x.key);
    const auto [first, is_new] = places.try_emplace(where, index);
    if (is_new || !repeated_.insert(index).second) return;
    error(fmt::format("points[{}]: the same place in figure {} as points[{}]", index, figure.id, first->second),
          in_quotes(where), "one point for each");
  }

  [[nodiscard]] bool is_wrong(std::size_t index, const std::string& key) const {
    return reported_.contains({index, key});
  }

  /// Reports a value only once, for any number of reasons.
  void wrong(std::size_t index, const std::string& key, const Value& found, const std::string& expected) {
    if (reported_.emplace(index, key).second) wrong_value(fmt::format("points[{}].{}", index, key), found, expected);
  }

  void wrong_value(const std::string& where, const Value& found, const std::string& expected) {
    error(where + ": wrong value", in_quotes(to_text(found).substr(0, kShownBytes)), expected);
  }
  void error(const std::string& message, std::string found, std::string expected) {
    errors_.add(Error{{file_, 0, 0}, message, std::move(found), std::move(expected)});
  }

  const Record& record_;
  const std::string& file_;
  ErrorList errors_;
  std::set<std::pair<std::size_t, std::string>> reported_;                           // point and key
  std::map<std::string, std::pair<std::size_t, std::size_t>, std::less<>> type_of_;  // index in the variant Value, and
                                                                                     // the point
  std::set<std::size_t> repeated_;
  bool used_ = false;
};

}  // namespace

Errors check_record(const Record& record, const Experiment& experiment, const std::string& file) {
  Check check(record, file);
  check.limits();
  check.remarks(experiment);
  for (const Figure& figure : experiment.figures()) check.types(figure);
  check.points();
  for (const Figure& figure : experiment.figures()) check.figure(figure);
  return std::move(check).take();
}

}  // namespace penstock::experiments
