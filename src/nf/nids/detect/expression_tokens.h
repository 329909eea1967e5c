// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A regular expression of PCRE2's, token by token, for those that ask what it may match without running it. What is not
// understood (conditions, recursion, verbs, comments, \Q) ends the tokens: nothing is then said of the expression.

#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::nids {

/// Of an item or a group: how often it may stand.
struct ExpressionQuantifier {
  static constexpr std::uint32_t kAnyNumber = std::numeric_limits<std::uint32_t>::max();

  std::string_view text;  // none: once
  std::uint32_t least = 1, most = 1;
  std::string_view how;  // the `+` or `?` at its end, or none

  [[nodiscard]] bool leaves_choice() const noexcept { return least != most; }
};

struct ExpressionToken {
  enum class Kind : std::uint8_t {
    item,     // a byte, a class, an assertion, a reference to a group
    open,     // of a group; `text` has all up to its first alternative
    close,    // `quantifier` is the group's
    bar,      // between alternatives
    options,  // `(?i)`: from here on
  };
  enum class Group : std::uint8_t { plain, ahead, behind };

  Kind kind = Kind::item;
  std::string_view text;  // without the quantifier
  ExpressionQuantifier quantifier;
  Group group = Group::plain;  // of open and close
  bool sets_options = false;   // `(?i)`, `(?i:`
  // Of items.
  int literal = -1;       // the byte that it is, in either case where the expression says so; -1: it is not one byte
  bool is_empty = false;  // it takes no bytes: `^`, `\b`
  bool refers = false;    // to a group, or it takes any number of bytes by itself (\R, \X)
};

class ExpressionTokens {
 public:
  /// `extended`: white space and # have no meaning of their own in the expression.
  explicit ExpressionTokens(std::string_view pattern, bool extended) : text_(pattern), extended_(extended) {}

  /// False: there are no more, or `understood` says no.
  [[nodiscard]] bool next(ExpressionToken& token);
  [[nodiscard]] bool understood() const noexcept { return understood_; }
  /// So far.
  [[nodiscard]] bool is_extended() const noexcept { return extended_; }

 private:
  using Group = ExpressionToken::Group;

  [[nodiscard]] char here() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }
  [[nodiscard]] char after(std::size_t ahead) const noexcept {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  // Each moves `at_` past what it reads; false: it is not understood.
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
