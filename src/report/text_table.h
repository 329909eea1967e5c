// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables on the terminal: columns as wide as their widest cell, numbers to the right.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penstock::report {

/// `text` broken between words into lines of at most 100 columns: the first begins with `first`, the others with
/// `next`.
[[nodiscard]] std::string wrapped(std::string_view text, std::string_view first, std::string_view next);

class TextTable {
 public:
  /// A heading that begins with '>' is that of a column of numbers, set to the right.
  explicit TextTable(const std::vector<std::string_view>& headings);
  /// As many cells as there are headings.
  void add_row(std::vector<std::string> cells);
  /// A text on lines of its own below the last row, indented and broken between words: for what would make a column
  /// wider than a terminal.
  void add_note(std::string_view text);
  /// A line for the headings and one for each row; no trailing spaces.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<bool> right_;
  struct Row {
    std::vector<std::string> cells;
    std::string notes;  // lines
  };
  std::vector<Row> rows_;
};

}  // namespace penstock::report
