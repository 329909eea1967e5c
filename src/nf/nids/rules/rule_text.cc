// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/rules/rule_text.h"

#include <algorithm>
#include <array>

#include "base/parameter.h"

namespace penstock::nids {

namespace {

constexpr bool is_space(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f';
}

/// Whether a comment is a rule that was disabled.
bool looks_like_a_rule(std::string_view text) noexcept {
  constexpr std::array<std::string_view, 10> kActions{"alert",     "pass",       "drop",  "reject", "rejectsrc",
                                                      "rejectdst", "rejectboth", "sdrop", "log",    "config"};
  const std::size_t end = text.find_first_of(" \t");
  if (end == text.npos || text.find('(') == text.npos || text.find(';') == text.npos) return false;
  return std::find(kActions.begin(), kActions.end(), text.substr(0, end)) != kActions.end();
}

}  // namespace

Place RuleLine::place(std::string_view at, const std::string& file) const {
  if (at.data() == nullptr || at.data() < text.data() || at.data() > text.data() + text.size()) return {file, line, 0};
  const auto offset = static_cast<std::size_t>(at.data() - text.data());
  const auto after = std::upper_bound(pieces.begin(), pieces.end(), offset,
                                      [](std::size_t o, const Piece& piece) { return o < piece.start; });
  const Piece& piece = *std::prev(after);
  return {file, piece.line, static_cast<std::uint32_t>(piece.column + (offset - piece.start))};
}

RuleLines::RuleLines(std::string_view text) noexcept : lines_(text) {}

bool RuleLines::next(RuleLine& rule) {
  rule = RuleLine{};
  bool joining = false;
  for (Line line; lines_.next(line);) {
    std::string_view text = line.text;
    if (!joining) {
      while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    }
    const auto column = static_cast<std::uint32_t>(text.data() - line.text.data() + 1);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    if (!joining) {
      if (text.empty() || text.front() == ';') continue;
      if (text.front() == '#') {
        // A disabled rule over several lines is no longer one: each of its lines is examined on its own.
        const std::size_t first = text.find_first_not_of("# \t");
        if (first == text.npos || !looks_like_a_rule(text.substr(first))) continue;
        rule.text = text.substr(first);
        rule.line = line.number;
        rule.disabled = true;
        rule.pieces = {{0, line.number, static_cast<std::uint32_t>(column + first)}};
        return true;
      }
      rule.line = line.number;
      if (text.back() != '\\') {
        rule.text = text.substr(0, kMostRuleBytes);
        rule.too_long = text.size() > kMostRuleBytes;
        rule.pieces = {{0, line.number, column}};
        return true;
      }
      joining = true;
      joined_.clear();
    }
    const bool goes_on = !text.empty() && text.back() == '\\';
    if (goes_on) text.remove_suffix(1);
    if (joined_.size() + text.size() > kMostRuleBytes) {
      rule.too_long = true;
      text = text.substr(0, kMostRuleBytes - joined_.size());
    }
    if (!text.empty()) rule.pieces.push_back({joined_.size(), line.number, column});
    joined_ += text;
    if (!goes_on) break;
  }
  if (!joining) return false;
  while (!joined_.empty() && is_space(joined_.back())) joined_.pop_back();
  rule.text = joined_;
  if (rule.pieces.empty()) rule.pieces.push_back({0, rule.line, 1});
  return true;
}

std::optional<RuleParts> split_rule(std::string_view text, Complaint& why) {
  const std::size_t open = text.find('(');
  if (open == text.npos) {
    why = {text, "rule without options", "", "(msg:…; sid:…;) after the header"};
    return std::nullopt;
  }
  if (text.back() != ')') {
    why = {text.substr(text.size() - 1), "unterminated rule",
           in_quotes(text.substr(text.size() - std::min<std::size_t>(text.size(), 20))), ")"};
    return std::nullopt;
  }
  return RuleParts{text.substr(0, open), text.substr(open + 1, text.size() - open - 2)};
}

std::optional<HeaderText> split_header(std::string_view text, Complaint& why) {
  std::array<std::string_view, 7> words;
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (is_space(text[at])) {
      ++at;
      continue;
    }
    const std::size_t start = at;
    int depth = 0;
    for (; at < text.size() && (depth > 0 || !is_space(text[at])); ++at) {
      if (text[at] == '[') ++depth;
      if (text[at] == ']') --depth;
    }
    const std::string_view word = text.substr(start, at - start);
    if (depth != 0) {
      why = {word, "unbalanced brackets", in_quotes(word), depth > 0 ? "]" : "["};
      return std::nullopt;
    }
    if (count == words.size()) {
      why = {word, "too many words in the rule's header", in_quotes(word), "("};
      return std::nullopt;
    }
    words[count++] = word;
  }
  if (count < words.size()) {
    why = {text, "too few words in the rule's header", in_quotes(trimmed(text)),
           "ACTION PROTOCOL ADDRESSES PORTS -> ADDRESSES PORTS"};
    return std::nullopt;
  }
  return HeaderText{words[0], words[1], words[2], words[3], words[4], words[5], words[6]};
}

bool OptionTexts::next(OptionText& option, Complaint& why) {
  rest_ = trimmed(rest_);
  if (rest_.empty()) return false;
  // As in Suricata and Snort, a semicolon ends an option anywhere, unless it is escaped with a backslash.
  std::size_t end = rest_.find(';');
  while (end != rest_.npos && end > 0 && rest_[end - 1] == '\\') end = rest_.find(';', end + 1);
  if (end == rest_.npos) {
    why = {rest_, "unterminated option", in_quotes(rest_), ";"};
    return false;
  }
  const std::string_view whole = rest_.substr(0, end);
  rest_.remove_prefix(end + 1);
  const std::size_t colon = whole.find(':');
  option.has_value = colon != whole.npos;
  option.name = trimmed(whole.substr(0, colon));
  option.value = option.has_value ? trimmed(whole.substr(colon + 1)) : std::string_view(whole.data() + whole.size(), 0);
  if (option.name.empty()) {
    why = {whole, "option without a name", in_quotes(whole), ""};
    return false;
  }
  return true;
}

std::vector<std::string_view> split_fields(std::string_view value) {
  std::vector<std::string_view> fields = split(value, ',');
  for (std::string_view& field : fields) field = trimmed(field);
  return fields;
}

std::vector<std::string_view> split_spaces(std::string_view value) {
  std::vector<std::string_view> words;
  for (const Word& word : split_words(value)) words.push_back(word.text);
  return words;
}

std::string with_suggestion(std::string message, std::string_view name, std::span<const std::string_view> known) {
  const std::string_view near = nearest_name(name, known);
  if (!near.empty()) message.append("; did you mean '").append(near).append("'?");
  return message;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = ascii_lower(c);
  return out;
}

}  // namespace penstock::nids
