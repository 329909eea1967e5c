// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables for the terminal: each column is as wide as its widest cell, and numbers are right-aligned.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penstock::report {

/// Breaks `text` between words into lines of at most 100 columns. The first line begins with `first`, the others with
/// `next`.
[[nodiscard]] std::string wrapped(std::string_view text, std::string_view first, std::string_view next);

class TextTable {
 public:
  /// A heading that begins with '>' is for a right-aligned column of numbers.
  explicit TextTable(const std::vector<std::string_view>& headings);
  /// There must be as many cells as headings.
  void add_row(std::vector<std::string> cells);
  /// Adds text below the last row, on indented lines that are broken between words. For text that would make a column
  /// wider than the terminal.
  void add_note(std::string_view text);
  /// One line for the headings and one for each row, without trailing spaces.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<bool> right_;
  struct Row {
    std::vector<std::string> cells;
    std::string notes;  // complete lines
  };
  std::vector<Row> rows_;
};

}  // namespace penstock::report
