// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes metrics in Prometheus's text format, version 0.0.4. The samples of a family follow each other, as the format
// requires; a family without samples does not appear.

#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "report/run_report.h"

namespace penstock::report {

class Exposition {
 public:
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

  enum class Type : std::uint8_t { counter, gauge, histogram, summary };
  /// Names must be valid; values may be any text.
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  /// Begins a family. `name` and `help` must outlive its first sample.
  void family(std::string_view name, Type type, std::string_view help);
  void sample(std::uint64_t value, Labels labels = {});
  void sample(double value, Labels labels = {});

  // Families of one sample.
  template <typename Number>
  void counter(std::string_view name, std::string_view help, Number value) {
    family(name, Type::counter, help);
    sample(value);
  }
  template <typename Number>
  void gauge(std::string_view name, std::string_view help, Number value) {
    family(name, Type::gauge, help);
    sample(value);
  }
  void histogram(std::string_view name, std::string_view help, const TimeHistogram& times);
  void summary(std::string_view name, std::string_view help, double sum, std::uint64_t count);

  [[nodiscard]] std::string take() && { return std::move(text_); }

 private:
  void line(std::string_view suffix, Labels labels, std::string_view value);

  std::string text_;
  std::string_view name_, help_;
  Type type_{};
  bool announced_ = false;  // the family has a sample
};

}  // namespace penstock::report
