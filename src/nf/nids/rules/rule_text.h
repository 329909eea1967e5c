// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rule files taken apart: lines into rules, a rule into its header's words and its options. Nothing is understood yet,
// and nothing is copied but rules of several lines.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ascii.h"
#include "base/error.h"
#include "base/text_file.h"

namespace penstock::nids {

/// What is longer is no rule (Suricata's limit is 8 KiB): memory and time stay bounded by it.
inline constexpr std::size_t kMostRuleBytes = 65'536;

/// What is wrong with a rule, where in its text.
struct Complaint {
  std::string_view at;  // in the rule's text; empty: the whole rule
  std::string message;
  std::string found;
  std::string expected;
  std::string reason = "syntax";  // what it is counted by
  std::size_t variables = 0;      // in one another, of which the innermost is wrong
};

/// One rule's text. Lines that a backslash ends are joined as Suricata joins them: the backslash is left out.
struct RuleLine {
  std::string_view text;   // held by the file's text or by the RuleLines, until its next
  std::uint32_t line = 0;  // of its first byte
  bool disabled = false;   // it is a comment
  bool too_long = false;   // `text` is its beginning
  [[nodiscard]] Place place(std::string_view at, const std::string& file) const;

  struct Piece {
    std::size_t start = 0;  // in `text`
    std::uint32_t line = 0, column = 0;
  };
  std::vector<Piece> pieces;
};

class RuleLines {
 public:
  /// Borrows the text.
  explicit RuleLines(std::string_view text) noexcept;
  /// The next rule, or comment that looks like one; other comments and empty lines are left out. False at the end.
  bool next(RuleLine& rule);

 private:
  LineReader lines_;
  std::string joined_;
};

struct HeaderText {
  std::string_view action, protocol, source, source_ports, direction, destination, destination_ports;
};

/// The words in front of the parenthesis; lists in brackets are one word whatever spaces are in them.
[[nodiscard]] std::optional<HeaderText> split_header(std::string_view text, Complaint& why);

struct OptionText {
  std::string_view name;
  std::string_view value;  // trimmed; empty where there is none
  bool has_value = false;
};

/// Walks the options between a rule's parentheses.
class OptionTexts {
 public:
  explicit OptionTexts(std::string_view body) noexcept : rest_(body) {}
  /// False at the end, and where `why` then says what is wrong.
  bool next(OptionText& option, Complaint& why);

 private:
  std::string_view rest_;
};

/// Header and body of a rule, without the parentheses.
struct RuleParts {
  std::string_view header, body;
};
[[nodiscard]] std::optional<RuleParts> split_rule(std::string_view text, Complaint& why);

/// Between commas, each trimmed.
[[nodiscard]] std::vector<std::string_view> split_fields(std::string_view value);
/// Between spaces.
[[nodiscard]] std::vector<std::string_view> split_spaces(std::string_view value);
[[nodiscard]] std::string lower_case(std::string_view text);
/// "unknown option; did you mean 'content'?", or the message alone where none of `known` is near.
[[nodiscard]] std::string with_suggestion(std::string message, std::string_view name,
                                          std::span<const std::string_view> known);

}  // namespace penstock::nids
