// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/error.h"
#include "base/units.h"
#include "experiments/curves.h"
#include "experiments/figure.h"
#include "report/text_table.h"

namespace penstock::experiments {
namespace {

/// Four significant digits, or all digits before the point. No exponent in the range of measurements.
std::string number_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e15) return fmt::format("{:.3e}", value);
  if (size >= 1000) return (value < 0 ? "-" : "") + format_count(static_cast<std::uint64_t>(std::llround(size)));
  return fmt::format("{:.{}f}", value, size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

/// "353 ± 4": the interval's half rounded up to one digit, or two if the first is below 3, and the mean to the same
/// place.
std::string mean_text(const Measured& mean) {
  const double half = mean.high - mean.value;
  if (half == 0 || std::abs(mean.value) >= 1e15 || half >= 1e15) return number_text(mean.value);
  const double size = std::abs(mean.value);
  const int most = size >= 1000 ? 0 : size >= 100 ? 2 : size >= 10 ? 3 : 4;
  const double magnitude = std::floor(std::log10(half));
  const bool two_digits = half < 3 * std::pow(10, magnitude);
  const int places = std::clamp(static_cast<int>(-magnitude) + (two_digits ? 1 : 0), 0, most);
  const double unit = std::pow(10, places);
  const auto text = [&](double value) {
    return std::abs(value) >= 1000 ? number_text(value) : fmt::format("{:.{}f}", value, places);
  };
  constexpr double kRounding = 1e-9;  // 4.000000001 is 4
  const double rounded = std::ceil(half * unit - kRounding) / unit;
  return rounded <= 0 ? number_text(mean.value) : text(mean.value) + " ± " + text(rounded);
}

std::string measured_text(const Measured& measured) {
  if (measured.spread == Spread::mean) return mean_text(measured);
  if (measured.spread != Spread::quotient || measured.low == measured.high) return number_text(measured.value);
  return fmt::format("{} ({} to {})", number_text(measured.value), number_text(measured.low),
                     number_text(measured.high));
}

std::string x_text(const Value& x) {
  const double* const number = std::get_if<double>(&x);
  const bool whole = number != nullptr && *number >= 0 && *number < 1e15 && std::trunc(*number) == *number;
  return whole ? format_count(static_cast<std::uint64_t>(*number)) : printable(to_text(x));
}

/// A column: its heading lines from top to bottom, and a cell for each x.
struct Column {
  std::vector<std::string> headings;
  std::vector<std::string> cells;

  [[nodiscard]] std::size_t width() const {
    std::size_t most = 0;
    for (const auto* texts : {&headings, &cells}) {
      for (const std::string& text : *texts) most = std::max(most, text.size());
    }
    return most;
  }
};

Column column_of(const Curve& curve, std::size_t rows) {
  Column column;
  for (const std::string& label : curve.labels) column.headings.push_back(printable(label));
  column.cells.resize(rows);
  for (const CurvePoint& point : curve.points) {
    std::string& cell = column.cells[point.x];
    cell += (cell.empty() ? "" : ", ") + measured_text(point.y);
  }
  return column;
}

/// Values of the point with this x; there is only one.
Column column_of(const Axis& axis, const Figure& figure, const Curves& curves, const Record& record) {
  Column column;
  column.headings = {printable(axis.label)};
  for (const Value& x : curves.xs) {
    const auto there = std::ranges::find_if(record.points, [&](const Point& point) {
      const Value* const value = point.find(figure.x.key);
      return value != nullptr && *value == x && satisfies(point, figure.where);
    });
    const auto value = there->number(axis.key);
    column.cells.push_back(value ? number_text(*value) : "");
  }
  return column;
}

/// Splits headings into one word per line, and gives all columns the same number of lines, which is returned.
std::size_t even_headings(std::vector<Column>& columns) {
  std::size_t rows = 1;
  for (Column& column : columns) {
    std::erase(column.headings, "");
    rows = std::max(rows, column.headings.size());
  }
  for (Column& column : columns) column.headings.resize(rows);
  return rows;
}

std::string terminal_table(const Column& xs, std::vector<Column> columns) {
  constexpr std::size_t kMost = 100;
  const std::size_t heading_rows = even_headings(columns);
  std::string text;
  for (std::size_t first = 0; first < columns.size();) {
    std::size_t end = first;
    for (std::size_t width = xs.width(); end < columns.size(); ++end) {
      width += 2 + columns[end].width();
      if (end > first && width > kMost) break;
    }
    const auto cells_of = [&](const std::string& front, auto cell) {
      std::vector<std::string> cells{front};
      for (std::size_t c = first; c < end; ++c) cells.push_back(cell(columns[c]));
      return cells;
    };
    std::vector<std::string> titles = cells_of(xs.headings[0], [&](const Column& c) { return c.headings[0]; });
    for (std::string& title : titles) title.insert(0, 1, '>');
    report::TextTable table({titles.begin(), titles.end()});
    for (std::size_t row = 1; row < heading_rows; ++row) {
      table.add_row(cells_of("", [&](const Column& c) { return c.headings[row]; }));
    }
    for (std::size_t row = 0; row < xs.cells.size(); ++row) {
      table.add_row(cells_of(xs.cells[row], [&](const Column& c) { return c.cells[row]; }));
    }
    if (first > 0) text += '\n';
    text += table.text();
    first = end;
  }
  return text;
}

std::string markdown_cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (std::string_view("|\\`*_<[").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string markdown_table(const Column& xs, const std::vector<Column>& columns) {
  std::string text = "| " + markdown_cell(xs.headings[0]) + " |";
  std::string rule = "| ---: |";
  for (const Column& column : columns) {
    std::string heading;
    for (const std::string& part : column.headings) heading += (part.empty() || heading.empty() ? "" : " ") + part;
    text += ' ' + markdown_cell(heading) + " |";
    rule += " ---: |";
  }
  text += '\n' + rule + '\n';
  for (std::size_t row = 0; row < xs.cells.size(); ++row) {
    text += "| " + markdown_cell(xs.cells[row]) + " |";
    for (const Column& column : columns) text += ' ' + column.cells[row] + " |";
    text += '\n';
  }
  return text;
}

/// With more series, a figure with panels has a table for each of them, if they are few.
constexpr std::size_t kMostSeries = 6;
constexpr std::size_t kMostTables = 6;

std::string one_table(const Figure& figure, const Record& record, Style style) {
  const Curves curves = curves_of(figure, record);
  Column xs{{printable(figure.x.label)}, {}};
  for (const Value& x : curves.xs) xs.cells.push_back(x_text(x));
  std::vector<Column> columns;
  if (figure.bars) {
    for (const Axis& axis : figure.bars->columns) columns.push_back(column_of(axis, figure, curves, record));
  } else {
    for (const auto* list : {&curves.series, &curves.limits}) {
      for (const Curve& curve : *list) columns.push_back(column_of(curve, curves.xs.size()));
    }
  }
  return style == Style::markdown ? markdown_table(xs, columns) : terminal_table(xs, columns);
}

/// How close the points came to their limit, for the series that came closest.
std::string nearest_to_limit(const Figure& figure, const Record& record) {
  if (!figure.limit || figure.limit->of != LimitLine::Of::point) return "";
  double most = 0;
  const Point* nearest = nullptr;
  for (const Point& point : record.points) {
    const auto y = y_of(figure, point);
    const auto limit = point.number(figure.limit->key);
    if (!y || !limit || *limit <= 0 || !satisfies(point, figure.where)) continue;
    const double part = *y / (*limit * figure.limit->scale);
    if (part <= most) continue;
    most = part;
    nearest = &point;
  }
  if (nearest == nullptr) return "";
  std::string which;
  for (const std::string& key : figure.series) {
    if (!nearest->text(key).empty()) which += key + ' ' + nearest->text(key) + ", ";
  }
  return fmt::format("Nearest to its limit ({}): {:.0f} %, with {}{} {}.", figure.limit->label, most * 100, which,
                     figure.x.key, nearest->text(figure.x.key));
}

/// What the cells show of repeated measurements.
std::string repeats_text(const Curves& curves) {
  double furthest_apart = 0;
  std::size_t fewest = 0;
  std::size_t most = 0;
  bool quotients = false;
  for (const Curve& curve : curves.series) {
    for (const auto& [x, y] : curve.points) {
      if (y.spread == Spread::range && y.value > 0)
        furthest_apart = std::max(furthest_apart, (y.high - y.low) / y.value);
      quotients |= y.spread == Spread::quotient;
      if (y.spread != Spread::mean) continue;
      fewest = most == 0 ? y.repeats : std::min(fewest, y.repeats);
      most = std::max(most, y.repeats);
    }
  }
  std::string text;
  if (most > 0) {
    text += fmt::format("± is the 95 % confidence interval of the mean of {}{} repeats (Student's t). ",
                        fewest == most ? "" : fmt::format("{} to ", fewest), most);
  }
  if (quotients) {
    text +=
        "In parentheses is the 95 % confidence interval of the quotient of two means (delta method for its logarithm, "
        "Welch's degrees of freedom). ";
  }
  if (furthest_apart > 0) {
    text += fmt::format("{}; repeats of a point differ by at most {:.1f} %. ",
                        most > 0 || quotients ? "Others are medians" : "Medians", furthest_apart * 100);
  }
  if (!text.empty()) text.pop_back();
  return text;
}

std::string left_out(const Figure& figure, const Curves& curves) {
  const std::size_t count = curves.without_value;
  if (count == 0) return "";
  return fmt::format("Not shown: {} point{} without a number for {}.", count, count == 1 ? "" : "s", figure.y.key);
}

}  // namespace

bool has_points(const Figure& figure, const Record& record) { return !curves_of(figure, record).series.empty(); }

std::string table(const Figure& figure, const Record& record, Style style) {
  const bool markdown = style == Style::markdown;
  const Curves curves = curves_of(figure, record);
  std::string text = markdown ? fmt::format("### {}\n\n{}, by {}.\n\n", figure.title, figure.y.label, figure.x.label)
                              : fmt::format("{}\n{}, by {}\n", figure.title, figure.y.label, figure.x.label);
  const std::vector<std::string> panels = panel_values(figure, record);
  if (figure.panels.empty() || curves.series.size() <= kMostSeries || panels.size() > kMostTables) {
    text += one_table(figure, record, style);
  } else {
    bool first = true;
    for (const std::string& value : panels) {
      const std::string title = printable(figure.panels + ' ' + value);
      text += (first ? "" : "\n") + (markdown ? "**" + title + "**\n\n" : title + '\n');
      text += one_table(figure_of_panel(figure, value), record, style);
      first = false;
    }
  }
  std::vector<std::string> notes{nearest_to_limit(figure, record), figure.bars ? "" : repeats_text(curves),
                                 left_out(figure, curves)};
  for (const Reference& reference : figure.references) {
    notes.push_back(fmt::format("{}{}{}: {}{} ({}).", reference.label, reference.panel.empty() ? "" : ", ",
                                reference.panel, x_text(Value(reference.y)),
                                reference.x ? fmt::format(" at {}", x_text(Value(*reference.x))) : "",
                                reference.source));
  }
  for (const Record::Remark& remark : record.remarks) {
    if (remark.figure == figure.id) notes.push_back(remark.text);
  }
  std::erase(notes, "");
  if (markdown && !notes.empty()) text += '\n';
  for (const std::string& note : notes) {
    text += markdown ? "- " + printable(note) + '\n' : report::wrapped(printable(note), "  ", "    ");
  }
  return text;
}

}  // namespace penstock::experiments
