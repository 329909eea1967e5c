// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/text_rows.h"

#include <fmt/format.h>

#include "report/text_table.h"

namespace penstock::experiments {

std::string table_of_texts(const std::string& title, const std::vector<std::string>& head, const TableRows& rows,
                           Style style) {
  if (style == Style::markdown) {
    const auto line = [](const std::vector<std::string>& cells) {
      std::string text = "|";
      for (const std::string& cell : cells) text += fmt::format(" {} |", cell);
      return text + '\n';
    };
    std::vector<std::string> headings = head;
    for (std::string& heading : headings) {
      if (heading.starts_with('>')) heading.erase(0, 1);
    }
    std::string text = "**" + title + "**\n\n" + line(headings) + line(std::vector<std::string>(head.size(), "---"));
    for (const auto& row : rows) text += line(row);
    return text;
  }
  report::TextTable table({head.begin(), head.end()});
  for (const auto& row : rows) table.add_row(row);
  return title + '\n' + table.text();
}

}  // namespace penstock::experiments
