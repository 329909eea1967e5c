// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/plot/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/units.h"

namespace penstock::experiments {
namespace {

constexpr double kTitleSize = 15;
constexpr double kTitleLine = 20;
constexpr double kLegendRow = 19;
constexpr double kNoteLine = 13;

std::string provenance(const Record& record) {
  const Record::Machine& machine = record.machine;
  if (record.date.empty()) return "";
  std::string text = fmt::format("Measured {} by penstock {}", record.date.substr(0, 10), record.version);
  if (!machine.cpu.empty()) text += fmt::format(" on {} of {}", format_count(machine.cores, "core"), machine.cpu);
  if (!machine.gpus.empty()) text += fmt::format(" and {} × {}", machine.gpus.size(), machine.gpus.front().name);
  return text + '.';
}

}  // namespace

double add_title(Chart& chart, const std::string& title) {
  chart.width = kPageWidth;
  chart.title = title;
  double y = kPageMargin;
  for (std::string& line : wrapped_text(title, kTitleSize * 1.08, kPageWidth - 2 * kPageMargin)) {
    y += kTitleLine;
    chart.texts.push_back({.text = std::move(line), .at = {kPageMargin, y - 5}, .size = kTitleSize, .bold = true});
  }
  return y + 4;
}

double add_legend(Chart& chart, const std::vector<LegendEntry>& entries, double top) {
  constexpr double kGap = 6;
  constexpr double kBetween = 22;
  double x = kPageMargin;
  double y = top;
  for (const LegendEntry& entry : entries) {
    const double width = kSampleWidth + kGap + text_width(entry.text, 12);
    if (x > kPageMargin && x + width > kPageWidth - kPageMargin) {
      x = kPageMargin;
      y += kLegendRow;
    }
    const double middle = y + kLegendRow / 2;
    chart.legend.push_back({entry.of, entry.style, {x, middle}});
    chart.texts.push_back({.text = entry.text, .at = {x + kSampleWidth + kGap, middle + 4}});
    x += width + kBetween;
  }
  return entries.empty() ? top : y + kLegendRow + 4;
}

void add_footer(Chart& chart, std::vector<std::string> notes, const Record& record, double top) {
  notes.push_back(provenance(record));  // empty notes are not drawn
  double y = top;
  for (const std::string& note : notes) {
    for (std::string& line : wrapped_text(note, kSmallText, kPageWidth - 2 * kPageMargin)) {
      y += kNoteLine + 1;
      chart.texts.push_back({.text = std::move(line), .at = {kPageMargin, y}, .size = kSmallText});
    }
  }
  chart.height = y + kPageMargin;
}

void add_margin_notes(Chart& chart, const Box& frame, std::vector<MarginNote> notes) {
  constexpr double kBetween = 3;
  std::ranges::stable_sort(notes, {}, [](const MarginNote& note) { return note.end.y; });
  const auto height = [](const MarginNote& note) { return static_cast<double>(note.lines.size()) * kNoteLine; };
  std::vector<double> tops;
  double free = frame.top - kNoteLine / 2;
  for (const MarginNote& note : notes) {
    tops.push_back(std::max(free, note.end.y - height(note) / 2));
    free = tops.back() + height(note) + kBetween;
  }
  double most = frame.bottom + kNoteLine / 2;  // upwards from the bottom, if the last ones were placed too low
  for (std::size_t i = notes.size(); i-- > 0;) {
    tops[i] = std::min(tops[i], most - height(notes[i]));
    most = tops[i] - kBetween;
  }
  for (std::size_t i = 0; i < notes.size(); ++i) {
    const double middle = tops[i] + height(notes[i]) / 2;
    if (notes[i].off == Off::no) {
      chart.leaders.push_back({notes[i].end, {frame.right + kNoteIndent - 3, middle}});
    } else {
      const double reach = notes[i].off == Off::above ? 6 : -6;
      chart.arrows.push_back({{frame.right + 7, middle + reach}, {frame.right + 7, middle - reach}});
    }
    double y = tops[i] + kNoteLine - 3;
    for (const std::string& line : notes[i].lines) {
      chart.texts.push_back({.text = line, .at = {frame.right + kNoteIndent, y}, .size = kSmallText});
      y += kNoteLine;
    }
  }
}

void add_x_labels(Chart& chart, double baseline, const std::vector<TickLabel>& labels) {
  const auto text_of = [&](const TickLabel& label) {
    return Text{.text = label.text, .at = {label.x, baseline}, .anchor = Anchor::middle, .size = kSmallText};
  };
  std::vector<Text> texts;
  const auto fits = [&](const Text& text) {
    constexpr double kBetween = 4;
    const Box box = text.box();
    return std::ranges::none_of(texts, [&](const Text& other) {
      const Box taken = other.box();
      return box.left < taken.right + kBetween && taken.left < box.right + kBetween;
    });
  };
  // Starts with the last label, because the right end of most figures matters most.
  const auto add = [&](std::size_t stride) {
    bool all = true;
    texts.clear();
    for (std::size_t i = labels.size(); i-- > 0;) {
      if ((labels.size() - 1 - i) % stride != 0) continue;
      const Text text = text_of(labels[i]);
      if (fits(text)) {
        texts.push_back(text);
      } else {
        all = false;
      }
    }
    return all;
  };
  bool even = true;
  for (std::size_t i = 2; i < labels.size(); ++i) {
    even &= std::abs(labels[i].x - 2 * labels[i - 1].x + labels[i - 2].x) < 1;
  }
  std::size_t stride = 1;
  while (!add(stride) && even) stride *= 2;
  chart.texts.insert(chart.texts.end(), texts.begin(), texts.end());
}

}  // namespace penstock::experiments
