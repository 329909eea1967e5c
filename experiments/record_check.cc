// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/record_check.h"

#include <fmt/format.h>

#include <cstddef>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "base/error_list.h"
#include "experiments/bars.h"
#include "experiments/curves.h"

namespace penstock::experiments {
namespace {

constexpr std::size_t kShownBytes = 80;
constexpr const char* kBarsExpected = "bars such as 'nids: 12.5 0 84.2; 40.1 56.2 140.3 | router: 310.6 0 84.5'";

class Check {
 public:
  Check(const Record& record, const std::string& file) : record_(record), file_(file) {}

  void figure(const Figure& figure) {
    std::size_t shown = 0;
    std::size_t with_value = 0;
    std::size_t drawable = 0;
    std::string last;
    for (std::size_t i = 0; i < record_.points.size(); ++i) {
      const Point& point = record_.points[i];
      if (!satisfies(point, figure.where)) continue;
      ++shown;
      values(figure, i);
      const auto y = y_of(figure, point);
      if (!y) continue;
      ++with_value;
      last = to_text(*y);
      if (can_be_drawn(figure, point, *y)) ++drawable;
    }
    used_ = used_ || with_value > 0;
    if (with_value == 0 || drawable > 0) return;
    error(fmt::format("figure {}: no value of {} can be drawn", figure.id, figure.y.key), last,
          figure.y.kind == AxisKind::logarithmic ? "numbers above 0, for a logarithmic axis" : "numbers of 0 or more");
  }

  void costs() {
    for (const char* key : {"core_dollars", "core_watts", "gpu_dollars", "gpu_watts"}) {
      positive(record_.limits, "limits", key);
    }
    for (std::size_t i = 0; i < record_.points.size(); ++i) {
      for (const char* key : {"dollars", "watts", "mbps_per_dollar", "mbps_per_watt"}) {
        positive(record_.points[i], fmt::format("points[{}]", i), key);
      }
    }
  }

  void machine_limit(const Figure& figure) {
    if (figure.limit && figure.limit->of == LimitLine::Of::machine)
      positive(record_.limits, "limits", figure.limit->key);
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

  /// The types of all values that the figure takes from a point.
  void values(const Figure& figure, std::size_t index) {
    for (const std::string& key : {figure.y.key, figure.y.key + "_min", figure.y.key + "_max", figure.y.earlier_key}) {
      number(index, key);
    }
    if (figure.limit && figure.limit->of == LimitLine::Of::point) number(index, figure.limit->key);
    if (!figure.bars) return;
    for (const Axis& column : figure.bars->columns) number(index, column.key);
    const Value* const bars = record_.points[index].find(figure.bars->key);
    if (bars == nullptr) return;
    const auto* const text = std::get_if<std::string>(bars);
    if (text == nullptr || !parse_bars(*text)) wrong(index, figure.bars->key, *bars, kBarsExpected);
  }

  void number(std::size_t index, const std::string& key) {
    const Value* const value = record_.points[index].find(key);
    if (value != nullptr && !std::holds_alternative<double>(*value)) wrong(index, key, *value, "a number");
  }

  void positive(const Point& values, const std::string& where, const std::string& key) {
    const Value* const value = values.find(key);
    if (value == nullptr || values.number(key).value_or(0) > 0) return;
    wrong_value(where + '.' + key, *value, "a number above 0");
  }

  /// Once, though several figures use the value.
  void wrong(std::size_t index, const std::string& key, const Value& found, const char* expected) {
    if (reported_.emplace(index, key).second) wrong_value(fmt::format("points[{}].{}", index, key), found, expected);
  }

  void wrong_value(const std::string& where, const Value& found, const char* expected) {
    error(where + ": wrong value", in_quotes(to_text(found)), expected);
  }
  void error(const std::string& message, std::string found, std::string expected) {
    errors_.add(Error{{file_, 0, 0}, message, std::move(found), std::move(expected)});
  }

  const Record& record_;
  const std::string& file_;
  ErrorList errors_;
  std::set<std::pair<std::size_t, std::string>> reported_;
  bool used_ = false;
};

}  // namespace

Errors check_record(const Record& record, const Experiment& experiment, const std::string& file) {
  Check check(record, file);
  for (const Figure& figure : experiment.figures()) {
    check.figure(figure);
    check.machine_limit(figure);
  }
  check.costs();
  return std::move(check).take();
}

}  // namespace penstock::experiments
