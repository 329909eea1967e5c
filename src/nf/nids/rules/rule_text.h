// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Splits rule files into rules, and a rule into the words of its header and its options. It does not interpret them,
// and copies only rules that span several lines.

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

/// Longer rules are refused (Suricata's limit is 8 KiB), which bounds memory and time.
inline constexpr std::size_t kMostRuleBytes = 65'536;

/// What is wrong with a rule, and where in its text.
struct Complaint {
  std::string_view at;  // in the rule's text; empty: the whole rule
  std::string message;
  std::string found;
  std::string expected;
  std::string reason = "syntax";  // the reason to count it by
  std::size_t variables = 0;      // depth of nested variables; the innermost one is wrong
};

/// One rule's text. Lines that end with a backslash are joined as Suricata does: the backslash is removed.
struct RuleLine {
  std::string_view text;   // points into the file's text or the RuleLines; valid until the next call of RuleLines::next
  std::uint32_t line = 0;  // of the first byte
  bool disabled = false;   // the rule is commented out
  bool too_long = false;   // `text` is only the rule's beginning
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
  /// Reads the next rule, or comment that looks like a rule; skips other comments and empty lines. False at the end.
  bool next(RuleLine& rule);

 private:
  LineReader lines_;
  std::string joined_;
};

struct HeaderText {
  std::string_view action, protocol, source, source_ports, direction, destination, destination_ports;
};

/// Splits the words before the parenthesis. A list in brackets is one word, even if it contains spaces.
[[nodiscard]] std::optional<HeaderText> split_header(std::string_view text, Complaint& why);

struct OptionText {
  std::string_view name;
  std::string_view value;  // trimmed; empty if there is none
  bool has_value = false;
};

/// Walks the options between a rule's parentheses.
class OptionTexts {
 public:
  explicit OptionTexts(std::string_view body) noexcept : rest_(body) {}
  /// False at the end, or on an error, which `why` then describes.
  bool next(OptionText& option, Complaint& why);

 private:
  std::string_view rest_;
};

/// A rule's header and body, without the parentheses.
struct RuleParts {
  std::string_view header, body;
};
[[nodiscard]] std::optional<RuleParts> split_rule(std::string_view text, Complaint& why);

/// Splits at commas, and trims each field.
[[nodiscard]] std::vector<std::string_view> split_fields(std::string_view value);
/// Splits at spaces.
[[nodiscard]] std::vector<std::string_view> split_spaces(std::string_view value);
[[nodiscard]] std::string lower_case(std::string_view text);
/// "unknown option; did you mean 'content'?", or just the message if no name in `known` is similar.
[[nodiscard]] std::string with_suggestion(std::string message, std::string_view name,
                                          std::span<const std::string_view> known);

}  // namespace penstock::nids
