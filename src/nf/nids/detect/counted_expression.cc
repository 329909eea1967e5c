// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/counted_expression.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace penstock::nids {

namespace {

constexpr std::uint32_t kManyTimes = 16;  // so often an item is repeated without a callout
constexpr std::string_view kCallout = "(?C)";
constexpr std::string_view kCalloutBeforeRepeat = "(?C1)";

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_hex(char c) noexcept { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Goes over the expression's tokens once. Each function that reads one moves `at_` past it; false: not understood.
class Reader {
 public:
  Reader(std::string_view text, bool extended) : text_(text), extended_(extended) {}

  std::optional<CountedExpression> read() {
    while (at_ < text_.size()) {
      if (!read_token()) return std::nullopt;
    }
    return std::move(counted_);
  }

 private:
  /// What a group does with what is in it. Lookarounds take no bytes; what is behind them has a fixed length.
  enum class Group : std::uint8_t { plain, ahead, behind };

  [[nodiscard]] char here() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }
  [[nodiscard]] char after(std::size_t ahead) const noexcept {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  [[nodiscard]] bool is_behind() const noexcept {
    return std::find(groups_.begin(), groups_.end(), Group::behind) != groups_.end();
  }

  bool read_token() {
    switch (here()) {
      case '(': return read_opening();
      case ')': return read_closing();
      case '|':
        end_alternative();
        counted_.pattern += text_[at_++];
        return true;
      case '#':
        if (extended_) return false;  // a comment
        break;
      default: break;
    }
    const std::size_t begin = at_;
    bool refers = false;  // to a group, of any length
    if (here() == '\\') {
      if (!read_escape(refers)) return false;
    } else if (here() == '[') {
      if (!read_class()) return false;
    } else {
      ++at_;
    }
    add_item(text_.substr(begin, at_ - begin), refers, false);
    return true;
  }

  /// `(`, `(?:`, `(?i:`, `(?=`, `(?<name>` …; or `(?i)`, which is all of itself.
  bool read_opening() {
    const std::size_t begin = at_++;
    Group group = Group::plain;
    if (here() == '*') return false;
    if (here() == '?') {
      ++at_;
      const bool python = here() == 'P' && after(1) == '<';
      if (python) ++at_;
      if (here() == '<' && !python && (after(1) == '=' || after(1) == '!')) {
        group = Group::behind;
        at_ += 2;
      } else if (here() == '<' || here() == '\'') {
        const std::size_t end = text_.find(here() == '<' ? '>' : '\'', at_ + 1);
        if (end == text_.npos) return false;
        at_ = end + 1;
      } else if (here() == '=' || here() == '!') {
        group = Group::ahead;
        ++at_;
      } else if (here() == '|' || here() == '>') {
        ++at_;
      } else {
        bool has_extended = false;
        while (is_letter(here()) || here() == '-' || here() == '^') {
          if (here() == 'P' || here() == 'R' || here() == 'C') return false;
          has_extended = has_extended || here() == 'x';
          ++at_;
        }
        if (has_extended) extended_ = true;
        if (here() == ')') {
          counted_.pattern += text_.substr(begin, ++at_ - begin);
          return true;
        }
        if (here() != ':') return false;
        ++at_;
      }
    }
    groups_.push_back(group);
    counted_.pattern += text_.substr(begin, at_ - begin);
    return true;
  }

  bool read_closing() {
    if (groups_.empty()) return false;
    end_alternative();
    groups_.pop_back();
    ++at_;
    add_item(")", false, true);
    return true;
  }

  void end_alternative() {
    if (!groups_.empty() && groups_.back() == Group::plain && !is_behind()) counted_.pattern += kCallout;
  }

  /// With all that belongs to it: `\x{41}`, `\012`, `\g{name}`.
  bool read_escape(bool& refers) {
    const char kind = after(1);
    if (kind == '\0' || kind == 'Q' || kind == 'E') return false;
    at_ += 2;
    switch (kind) {
      case 'x':
        if (here() == '{') return skip_to('}');
        for (int digits = 0; digits < 2 && is_hex(here()); ++digits) ++at_;
        return true;
      case 'c': ++at_; return at_ <= text_.size();
      case 'o':
      case 'N': return here() != '{' || skip_to('}');
      case 'p':
      case 'P':
        if (here() == '{') return skip_to('}');
        ++at_;
        return at_ <= text_.size();
      case 'g':
      case 'k':
        refers = true;
        if (here() == '{') return skip_to('}');
        if (here() == '<') return skip_to('>');
        if (here() == '\'') {
          ++at_;
          return skip_to('\'');
        }
        if (here() == '-' || here() == '+') ++at_;
        break;
      default: refers = kind >= '1' && kind <= '9'; break;
    }
    if (refers || is_digit(kind)) {
      while (is_digit(here())) ++at_;
    }
    return true;
  }

  bool skip_to(char end) {
    const std::size_t found = text_.find(end, at_);
    if (found == text_.npos) return false;
    at_ = found + 1;
    return true;
  }

  bool read_class() {
    ++at_;
    if (here() == '^') ++at_;
    if (here() == ']') ++at_;
    while (at_ < text_.size() && here() != ']') {
      if (here() == '\\') {
        if (after(1) == 'Q' || after(1) == 'E') return false;
        at_ += 2;
      } else if (here() == '[' && (after(1) == ':' || after(1) == '.' || after(1) == '=')) {
        const char end[] = {after(1), ']'};
        const std::size_t found = text_.find(std::string_view(end, 2), at_ + 2);
        if (found == text_.npos) return false;  // whether it is a class of characters is not decided here
        at_ = found + 2;
      } else {
        ++at_;
      }
    }
    if (at_ >= text_.size()) return false;
    ++at_;
    return true;
  }

  struct Quantifier {
    std::string_view text;
    std::uint32_t least = 1, most = 1;  // most 0: any number
    bool leaves_choice = false;
    std::string_view how;  // `+`, `?` or none

    /// Of the same item behind so many of it.
    [[nodiscard]] std::string without(std::uint32_t times) const {
      std::string rest = "{" + std::to_string(least - times);
      if (leaves_choice) rest += most == 0 ? "," : "," + std::to_string(most - times);
      return rest.append("}").append(how);
    }
  };

  /// `*`, `+`, `?`, `{n}`, `{n,}`, `{n,m}`, and `+` or `?` after one. A brace that is none of these stands for itself.
  [[nodiscard]] Quantifier quantifier() const noexcept {
    std::size_t end = at_;
    Quantifier found{.text = {}, .least = 0, .most = 0, .leaves_choice = true, .how = {}};
    const auto number = [&](std::uint32_t& value) {
      const std::size_t begin = end;
      for (; end < text_.size() && is_digit(text_[end]); ++end) {
        value = std::min<std::uint32_t>(value * 10 + static_cast<std::uint32_t>(text_[end] - '0'),
                                        std::numeric_limits<std::uint16_t>::max());
      }
      return end > begin;
    };
    if (here() == '*' || here() == '+' || here() == '?') {
      ++end;
    } else if (here() == '{') {
      ++end;
      if (!number(found.least)) return {};
      found.leaves_choice = end < text_.size() && text_[end] == ',';
      if (found.leaves_choice) {
        ++end;
        number(found.most);
      }
      if (end >= text_.size() || text_[end] != '}') return {};
      ++end;
    } else {
      return {};
    }
    const std::size_t suffix = end;
    if (end < text_.size() && (text_[end] == '+' || text_[end] == '?')) ++end;
    found.how = text_.substr(suffix, end - suffix);
    found.text = text_.substr(at_, end - at_);
    return found;
  }

  void add_item(std::string_view item, bool refers, bool is_group) {
    const Quantifier repeated = quantifier();
    at_ += repeated.text.size();
    const bool counts = !is_behind();
    if (counts && refers) {
      add_callout_before_repeat(std::numeric_limits<std::uint16_t>::max());
      add(item, repeated.text);
    } else if (counts && !is_group && repeated.least > kManyTimes) {
      // Rarely does it come so far that the rest is worth a callout.
      add(item, "{" + std::to_string(kManyTimes) + "}");
      add_callout_before_repeat(repeated.least - kManyTimes);
      add(item, repeated.without(kManyTimes));
    } else {
      add(item, repeated.text);
    }
    if (counts && repeated.leaves_choice) counted_.pattern += kCallout;
  }

  void add(std::string_view item, std::string_view repeated) {
    counted_.pattern += item;
    counted_.pattern += repeated;
  }

  void add_callout_before_repeat(std::uint32_t bytes) {
    counted_.longest_repeat = std::max(counted_.longest_repeat, bytes);
    counted_.pattern += kCalloutBeforeRepeat;
  }

  std::string_view text_;
  bool extended_;
  std::size_t at_ = 0;
  std::vector<Group> groups_;
  CountedExpression counted_;
};

}  // namespace

std::optional<CountedExpression> with_callouts(std::string_view pattern, bool extended) {
  return Reader(pattern, extended).read();
}

}  // namespace penstock::nids
