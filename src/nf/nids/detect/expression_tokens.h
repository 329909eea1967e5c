// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Splits a PCRE2 regular expression into tokens, for analyses of what it may match. Constructs that are not supported
// (conditions, recursion, verbs, comments, \Q) end the tokens; nothing is then known of the expression.

#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::nids {

/// How often an item or a group may repeat.
struct ExpressionQuantifier {
  static constexpr std::uint32_t kAnyNumber = std::numeric_limits<std::uint32_t>::max();

  std::string_view text;  // empty: once
  std::uint32_t least = 1, most = 1;
  std::string_view how;  // a trailing `+` or `?`, if any

  [[nodiscard]] bool leaves_choice() const noexcept { return least != most; }
};

struct ExpressionToken {
  enum class Kind : std::uint8_t {
    item,     // a byte, a class, an assertion, a backreference
    open,     // begins a group; `text` includes everything up to its first alternative
    close,    // `quantifier` is the group's
    bar,      // between alternatives
    options,  // `(?i)`: applies from here on
  };
  enum class Group : std::uint8_t { plain, ahead, behind };

  Kind kind = Kind::item;
  std::string_view text;  // without the quantifier
  ExpressionQuantifier quantifier;
  Group group = Group::plain;  // for open and close
  bool sets_options = false;   // `(?i)`, `(?i:`
  // For items.
  int literal = -1;       // the byte that it matches, in either case if the expression ignores case; -1: not a single
                          // byte
  bool is_empty = false;  // it consumes no bytes: `^`, `\b`
  bool refers = false;    // a backreference, or an item of variable length (\R, \X)
};

class ExpressionTokens {
 public:
  /// `extended`: white space and # in the pattern are ignored (PCRE2_EXTENDED).
  explicit ExpressionTokens(std::string_view pattern, bool extended) : text_(pattern), extended_(extended) {}

  /// Reads the next token. False at the end, or if `understood()` is false.
  [[nodiscard]] bool next(ExpressionToken& token);
  [[nodiscard]] bool understood() const noexcept { return understood_; }
  /// Whether the text read so far has turned extended syntax on.
  [[nodiscard]] bool is_extended() const noexcept { return extended_; }

 private:
  using Group = ExpressionToken::Group;

  [[nodiscard]] char here() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }
  [[nodiscard]] char after(std::size_t ahead) const noexcept {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  // Each moves `at_` past what it reads. False if it is not supported.
  bool read(ExpressionToken& token);
  bool read_opening(ExpressionToken& token);
  bool read_item(ExpressionToken& token);
  bool read_escape(ExpressionToken& token);
  bool read_hexadecimal(ExpressionToken& token);
  bool read_class();
  bool skip_to(char end);
  void read_quantifier(ExpressionQuantifier& found);

  std::string_view text_;
  bool extended_;
  bool understood_ = true;
  std::size_t at_ = 0;
  std::vector<Group> groups_;
};

}  // namespace penstock::nids
