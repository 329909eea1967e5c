// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/exposition.h"

#include <fmt/format.h>

#include <chrono>
#include <iterator>

#include "base/error.h"

namespace penstock::report {

namespace {

constexpr std::string_view kTypes[] = {"counter", "gauge", "histogram", "summary"};

/// Names in captures and chain files may have bytes that are not UTF-8, which the format requires.
void append_label_value(std::string& out, std::string_view value) {
  const std::string valid = penstock::printable(value);
  for (const char c : valid) {
    if (c == '\\' || c == '"') out.push_back('\\');
    out.push_back(c);
  }
}

std::string text_of(double value) { return fmt::format("{}", value); }

}  // namespace

void Exposition::family(std::string_view name, Type type, std::string_view help) {
  name_ = name;
  type_ = type;
  help_ = help;
  announced_ = false;
}

void Exposition::sample(std::uint64_t value, Labels labels) { line("", labels, fmt::format_int(value).c_str()); }

void Exposition::sample(double value, Labels labels) { line("", labels, text_of(value)); }

void Exposition::histogram(std::string_view name, std::string_view help, const TimeHistogram& times) {
  family(name, Type::histogram, help);
  for (const auto& [limit, count] : times.at_most) {
    const std::string seconds = text_of(std::chrono::duration<double>(limit).count());
    line("_bucket", {{"le", seconds}}, fmt::format_int(count).c_str());
  }
  const std::string count = fmt::format_int(times.count).str();
  line("_bucket", {{"le", "+Inf"}}, count);
  line("_sum", {}, text_of(times.sum_s));
  line("_count", {}, count);
}

void Exposition::summary(std::string_view name, std::string_view help, double sum, std::uint64_t count) {
  family(name, Type::summary, help);
  line("_sum", {}, text_of(sum));
  line("_count", {}, fmt::format_int(count).c_str());
}

void Exposition::line(std::string_view suffix, Labels labels, std::string_view value) {
  if (!announced_) {
    fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", name_, help_, name_,
                   kTypes[static_cast<std::size_t>(type_)]);
    announced_ = true;
  }
  text_ += name_;
  text_ += suffix;
  char separator = '{';
  for (const auto& [label, text] : labels) {
    text_.push_back(separator);
    separator = ',';
    text_ += label;
    text_ += "=\"";
    append_label_value(text_, text);
    text_.push_back('"');
  }
  if (separator == ',') text_.push_back('}');
  text_.push_back(' ');
  text_ += value;
  text_.push_back('\n');
}

}  // namespace penstock::report
