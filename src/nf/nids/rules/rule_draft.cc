// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/rules/rule_draft.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/units.h"

namespace penstock::nids {

namespace {

// Real rules have a handful.
constexpr std::size_t kMostVariables = 256;

bool starts_a_name(std::string_view text) noexcept {
  const char c = text.empty() ? '0' : text.front();
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

std::string bounds(const std::string& from, const std::string& to) { return from + " to " + to; }

/// Reads a number with its unit from the front of the text. False if there is none.
bool take_number(std::string_view& text, std::uint64_t& out) {
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  std::size_t end = is_hex ? 2 : 0;
  const auto is_digit = [&](char c) {
    return (c >= '0' && c <= '9') || (is_hex && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')));
  };
  while (end < text.size() && is_digit(text[end])) ++end;
  const auto number = parse_integer(text.substr(0, end));
  if (!number) return false;
  text.remove_prefix(end);
  out = *number;
  if (is_hex) return true;
  struct Unit {
    std::string_view name;
    unsigned shift;
  };
  constexpr std::array<Unit, 6> kUnits{{{"kib", 10}, {"mib", 20}, {"gib", 30}, {"kb", 10}, {"mb", 20}, {"gb", 30}}};
  for (const Unit& unit : kUnits) {
    if (!equals_ignoring_case(text.substr(0, unit.name.size()), unit.name)) continue;
    if (out > (std::numeric_limits<std::uint64_t>::max() >> unit.shift)) return false;
    out <<= unit.shift;
    text.remove_prefix(unit.name.size());
    break;
  }
  return true;
}

bool take(std::string_view& text, std::string_view what) noexcept {
  if (!text.starts_with(what)) return false;
  text.remove_prefix(what.size());
  text = trimmed(text);
  return true;
}

}  // namespace

std::uint32_t NameTable::number(std::string_view name) {
  const auto [at, is_new] = numbers_.try_emplace(std::string(name), static_cast<std::uint32_t>(names_.size()));
  if (is_new) names_.emplace_back(name);
  return at->second;
}

bool RuleDraft::fail(std::string_view at, std::string message, std::string found, std::string expected,
                     std::string reason) {
  complaint = {at, std::move(message), std::move(found), std::move(expected), std::move(reason)};
  return false;
}

bool RuleDraft::fail_combination(std::string_view at, std::string message, std::string expected) {
  return fail(at, std::move(message), in_quotes(at), std::move(expected), "combination");
}

bool RuleDraft::fail_unsupported(std::string_view at, std::string_view what) {
  return fail(at, "needs " + printable(what) + ", which is not supported", in_quotes(at), "",
              "option " + printable(what));
}

std::vector<BufferMatch>& RuleDraft::matches() { return buffers_[current_].matches; }

void RuleDraft::add(BufferMatch match) {
  if (std::holds_alternative<Content>(match)) content_ = {current_, matches().size(), true};
  matches().push_back(std::move(match));
}

void RuleDraft::look_at(Buffer buffer) {
  for (current_ = 0; current_ < buffers_.size(); ++current_) {
    if (buffers_[current_].buffer == buffer) return;
  }
  buffers_.push_back({buffer, {}});
}

std::size_t RuleDraft::conditions() const noexcept {
  std::size_t count = rule.packet_matches.size() + rule.state_matches.size() + rule.state_changes.size() +
                      rule.tags.size() + (has_flow ? 1 : 0) + (rule.threshold ? 1 : 0);
  for (const BufferMatches& buffer : buffers_) count += buffer.matches.size();
  return count;
}

bool RuleDraft::has_header_buffer() const noexcept {
  return std::any_of(buffers_.begin(), buffers_.end(), [](const BufferMatches& buffer) {
    return buffer.buffer != Buffer::payload && buffer.buffer != Buffer::base64_data && !buffer.matches.empty();
  });
}

Content* RuleDraft::last_content() noexcept {
  if (!content_.is_set) return nullptr;
  return &std::get<Content>(buffers_[content_.buffer].matches[content_.index]);
}

const BufferMatch* RuleDraft::last_cursor(std::size_t before) noexcept {
  const std::vector<BufferMatch>& all = matches();
  for (std::size_t i = std::min(before, all.size()); i > 0; --i) {
    const BufferMatch& match = all[i - 1];
    if (std::holds_alternative<Content>(match) || std::holds_alternative<Pcre>(match)) return &match;
  }
  return nullptr;
}

int RuleDraft::variable(std::string_view name) const noexcept {
  const auto at = std::find(variables_.begin(), variables_.end(), name);
  return at == variables_.end() ? -1 : static_cast<int>(at - variables_.begin());
}

bool RuleDraft::make_variable(std::string_view name, int& number) {
  if (!starts_a_name(name)) {
    return fail(name, "not a variable's name", in_quotes(name), "a name that begins with a letter");
  }
  number = variable(name);
  if (number >= 0) return true;
  if (variables_.size() >= kMostVariables) {
    return fail(name, "too many variables", "", "at most " + std::to_string(kMostVariables));
  }
  number = static_cast<int>(variables_.size());
  variables_.emplace_back(name);
  return true;
}

Rule RuleDraft::take() && {
  rule.variables = static_cast<std::uint32_t>(variables_.size());
  rule.buffers.clear();
  for (BufferMatches& buffer : buffers_) {
    if (!buffer.matches.empty()) rule.buffers.push_back(std::move(buffer));
  }
  return std::move(rule);
}

bool read_unsigned(RuleDraft& draft, std::string_view text, std::uint64_t least, std::uint64_t most, const char* what,
                   std::uint64_t& out) {
  const auto value = parse_integer(text);
  if (!value || *value < least || *value > most) {
    return draft.fail(text, std::string("wrong ") + what, in_quotes(text),
                      bounds(std::to_string(least), std::to_string(most)), "value");
  }
  out = *value;
  return true;
}

bool read_signed(RuleDraft& draft, std::string_view text, std::int64_t least, std::int64_t most, const char* what,
                 std::int64_t& out) {
  const bool negative = text.starts_with('-');
  const std::string_view digits = negative || text.starts_with('+') ? text.substr(1) : text;
  const auto value = parse_integer(digits);
  if (value && *value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    const auto magnitude = static_cast<std::int64_t>(*value);
    out = negative ? -magnitude : magnitude;
    if (out >= least && out <= most) return true;
  }
  return draft.fail(text, std::string("wrong ") + what, in_quotes(text),
                    bounds(std::to_string(least), std::to_string(most)), "value");
}

bool read_number(RuleDraft& draft, std::string_view text, std::int64_t least, std::int64_t most, const char* what,
                 Number& out) {
  if (!starts_a_name(text)) return read_signed(draft, text, least, most, what, out.value);
  out.variable = draft.variable(text);
  if (out.variable >= 0) return true;
  return draft.fail(text, "unknown variable", in_quotes(text),
                    "the result of an earlier byte_extract or byte_math, or a number", "unknown variable");
}

bool read_range(RuleDraft& draft, std::string_view text, std::uint64_t most, const char* what, NumberRange& out) {
  using Operator = NumberRange::Operator;
  const std::string_view whole = trimmed(text);
  std::string_view rest = whole;
  const auto fail = [&](const char* expected) {
    return draft.fail(whole, std::string("wrong ") + what, in_quotes(whole), expected, "value");
  };
  constexpr const char* kForms = "N, =N, !N, <N, <=N, >N, >=N, N-N or N<>N";
  Operator operation = Operator::equal;
  if (take(rest, ">=")) {
    operation = Operator::greater_equal;
  } else if (take(rest, "<=")) {
    operation = Operator::less_equal;
  } else if (take(rest, ">")) {
    operation = Operator::greater;
  } else if (take(rest, "<")) {
    operation = Operator::less;
  } else if (take(rest, "!=") || take(rest, "!")) {
    operation = Operator::not_equal;
  } else if (take(rest, "=")) {
    operation = Operator::equal;
  }
  if (!take_number(rest, out.first)) return fail(kForms);
  rest = trimmed(rest);
  const bool may_be_two = operation == Operator::equal || operation == Operator::not_equal;
  if (may_be_two && (take(rest, "<>") || take(rest, "-"))) {
    if (!take_number(rest, out.second)) return fail(kForms);
    operation = operation == Operator::equal ? Operator::between : Operator::not_between;
    if (out.second > most || out.second <= out.first || out.second - out.first < 2) {
      return fail(
          "a first number less than the second, with at least one number between them: the ends are not part of the "
          "range");
    }
  }
  if (!trimmed(rest).empty()) return fail(kForms);
  // As in Suricata, a range that can never hold is an error.
  if (out.first > most || ((operation == Operator::less || operation == Operator::greater_equal) && out.first == 0) ||
      ((operation == Operator::greater || operation == Operator::less_equal) && out.first == most)) {
    return draft.fail(whole, std::string("wrong ") + what, in_quotes(whole), bounds("0", std::to_string(most)),
                      "value");
  }
  out.operation = operation;
  return true;
}

}  // namespace penstock::nids
