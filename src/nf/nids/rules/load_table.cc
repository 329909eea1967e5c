// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/rules/load_table.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "base/units.h"

namespace penstock::nids {

std::map<std::string, std::size_t> RuleSet::left_out_by_reason() const {
  std::map<std::string, std::size_t> counts;
  for (const Left& left : left_out) ++counts[left.reason];
  return counts;
}

bool RuleSet::Left::is_mistake() const {
  static constexpr std::array<std::string_view, 10> kMistakes{
      "syntax",         "value",       "no sid",           "unknown option", "unknown protocol",
      "unknown action", "combination", "unknown variable", "duplicate sid",  "regular expression"};
  return std::find(kMistakes.begin(), kMistakes.end(), reason) != kMistakes.end();
}

LoadTable load_table(const RuleSet& set) {
  LoadTable table;
  table.loaded = set.rules.size();
  table.disabled = set.disabled;
  std::unordered_map<std::string, std::size_t> rows;
  for (const RuleSet::Left& left : set.left_out) {
    const auto [at, is_new] = rows.try_emplace(left.reason, table.left_out.size());
    if (is_new) table.left_out.push_back({left.reason, 0, left.why});
    ++table.left_out[at->second].rules;
  }
  std::stable_sort(table.left_out.begin(), table.left_out.end(),
                   [](const LoadTable::Row& a, const LoadTable::Row& b) { return a.rules > b.rules; });
  return table;
}

std::string to_string(const LoadTable& table) {
  std::size_t left_out = 0;
  std::size_t width = 0;
  for (const LoadTable::Row& row : table.left_out) {
    left_out += row.rules;
    width = std::max(width, row.reason.size());
  }
  std::string text = format_count(table.loaded) + (table.loaded == 1 ? " rule loaded, " : " rules loaded, ") +
                     format_count(left_out) + " left out, " + format_count(table.disabled) + " disabled\n";
  for (const LoadTable::Row& row : table.left_out) {
    const std::string count = format_count(row.rules);
    text += "  " + row.reason + std::string(width - row.reason.size() + 2, ' ') +
            std::string(count.size() < 8 ? 8 - count.size() : 0, ' ') + count + "  first: " + to_string(row.first) +
            '\n';
  }
  return text;
}

}  // namespace penstock::nids
