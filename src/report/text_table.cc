// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/text_table.h"

#include <algorithm>
#include <utility>

namespace penstock::report {

namespace {

/// The number of terminal columns of a UTF-8 text, approximately: one per code point.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string wrapped(std::string_view text, std::string_view first, std::string_view next) {
  constexpr std::size_t kColumns = 100;
  std::string lines;
  std::string line(first);
  bool has_word = false;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (has_word && width_of(line) + 1 + width_of(word) > kColumns) {
      lines += std::exchange(line, std::string(next)) + '\n';
      has_word = false;
    }
    if (has_word) line += ' ';
    line += word;
    has_word = true;
  }
  return lines + line + '\n';
}

TextTable::TextTable(const std::vector<std::string_view>& headings) {
  std::vector<std::string> cells;
  for (std::string_view heading : headings) {
    right_.push_back(heading.starts_with('>'));
    cells.emplace_back(heading.substr(right_.back() ? 1 : 0));
  }
  rows_.push_back({std::move(cells), ""});
}

void TextTable::add_row(std::vector<std::string> cells) {
  cells.resize(right_.size());
  rows_.push_back({std::move(cells), ""});
}

void TextTable::add_note(std::string_view text) {
  rows_.back().notes += wrapped(text, std::string(4, ' '), std::string(7, ' '));
}

std::string TextTable::text() const {
  std::vector<std::size_t> widths(right_.size());
  for (const auto& [row, notes] : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  std::string text;
  for (const auto& [row, notes] : rows_) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - width_of(row[c]), ' ');
      if (c > 0) line += "  ";
      line += right_[c] ? padding + row[c] : row[c] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text.append(line).append("\n").append(notes);
  }
  return text;
}

}  // namespace penstock::report
