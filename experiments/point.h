// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// One measured point: names and values in insertion order, parameters and results alike ("engine" dir24, "batch" 65536,
// "mpps" 812.5). A list of some forty entries, searched linearly.

#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace penstock::experiments {

/// All measurements of one value, in order (repeats.h).
using Repeats = std::vector<double>;
using Value = std::variant<bool, double, std::string, Repeats>;

/// As users write it after `--only KEY=`: "65536", "0.5", "true", "dir24"; repeats: "812.5, 811".
[[nodiscard]] std::string to_text(const Value& value);

class Point {
 public:
  /// Adds the value, or replaces the one with this name in its position. Numbers that are not finite, and repeats with
  /// one, are ignored, since JSON has none.
  template <typename T>
  Point& set(std::string_view name, const T& value) {
    if constexpr (std::same_as<T, bool> || std::same_as<T, Repeats> || std::same_as<T, Value>) {
      put(name, value);
    } else if constexpr (std::is_arithmetic_v<T>) {
      put(name, static_cast<double>(value));
    } else {
      put(name, std::string(value));
    }
    return *this;
  }

  /// Null if there is no such name.
  [[nodiscard]] const Value* find(std::string_view name) const noexcept;
  /// Returns nothing if there is no such name, or its value is not a number.
  [[nodiscard]] std::optional<double> number(std::string_view name) const noexcept;
  /// The value as text; "" if there is no such name.
  [[nodiscard]] std::string text(std::string_view name) const;

  [[nodiscard]] bool empty() const noexcept { return values_.empty(); }
  [[nodiscard]] auto begin() const noexcept { return values_.begin(); }
  [[nodiscard]] auto end() const noexcept { return values_.end(); }
  friend bool operator==(const Point&, const Point&) = default;

 private:
  void put(std::string_view name, Value value);

  std::vector<std::pair<std::string, Value>> values_;
};

/// Selects points whose value of `key`, as text, is one of `values`.
struct Condition {
  std::string key;
  std::vector<std::string> values;
};

using Conditions = std::vector<Condition>;

/// Whether the point satisfies all conditions. If it lacks a key, it does not.
[[nodiscard]] bool satisfies(const Point& point, const std::vector<Condition>& conditions);

/// "engine=dir24 batch=65536": all values of the point.
[[nodiscard]] std::string describe(const Point& point);

}  // namespace penstock::experiments
