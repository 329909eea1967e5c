// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/expression_tokens.h"

#include <algorithm>

namespace penstock::nids {

namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

int hex_value(char c) noexcept {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

bool ExpressionTokens::next(ExpressionToken& token) {
  if (!understood_ || at_ >= text_.size()) {
    understood_ = understood_ && groups_.empty();
    return false;
  }
  token = {};
  understood_ = read(token);
  return understood_;
}

bool ExpressionTokens::read(ExpressionToken& token) {
  const std::size_t begin = at_;
  const auto take_text = [&] { token.text = text_.substr(begin, at_ - begin); };
  switch (here()) {
    case '(':
      if (!read_opening(token)) return false;
      take_text();
      return true;
    case ')':
      if (groups_.empty()) return false;
      token.kind = ExpressionToken::Kind::close;
      token.group = groups_.back();
      groups_.pop_back();
      ++at_;
      take_text();
      read_quantifier(token.quantifier);
      return true;
    case '|':
      token.kind = ExpressionToken::Kind::bar;
      token.group = groups_.empty() ? Group::plain : groups_.back();
      ++at_;
      take_text();
      return true;
    default: break;
  }
  if (!read_item(token)) return false;
  take_text();
  read_quantifier(token.quantifier);
  return true;
}

/// `(`, `(?:`, `(?i:`, `(?=`, `(?<name>` …; or `(?i)`, which is complete.
bool ExpressionTokens::read_opening(ExpressionToken& token) {
  token.kind = ExpressionToken::Kind::open;
  ++at_;
  if (here() == '*') return false;
  if (here() == '?') {
    ++at_;
    const bool python = here() == 'P' && after(1) == '<';
    if (python) ++at_;
    if (here() == '<' && !python && (after(1) == '=' || after(1) == '!')) {
      token.group = Group::behind;
      at_ += 2;
    } else if (here() == '<' || here() == '\'') {
      const char end = here() == '<' ? '>' : '\'';
      ++at_;
      if (!skip_to(end)) return false;
    } else if (here() == '=' || here() == '!') {
      token.group = Group::ahead;
      ++at_;
    } else if (here() == '|' || here() == '>') {
      ++at_;
    } else {
      for (; is_letter(here()) || here() == '-' || here() == '^'; ++at_) {
        if (here() == 'P' || here() == 'R' || here() == 'C') return false;
        if (here() == 'x') extended_ = true;
        token.sets_options = true;
      }
      if (here() == ')') {
        token.kind = ExpressionToken::Kind::options;
        ++at_;
        return true;
      }
      if (here() != ':') return false;
      ++at_;
    }
  }
  groups_.push_back(token.group);
  return true;
}

bool ExpressionTokens::read_item(ExpressionToken& token) {
  switch (here()) {
    case '\\': return read_escape(token);
    case '[': return read_class();
    case '#':
      if (extended_) return false;  // a comment
      break;
    case '^':
    case '$':
      token.is_empty = true;
      ++at_;
      return true;
    case '.': ++at_; return true;
    default: break;
  }
  token.literal = static_cast<unsigned char>(text_[at_++]);
  return true;
}

/// Reads an escape with its argument: `\x{41}`, `\012`, `\g{name}`.
bool ExpressionTokens::read_escape(ExpressionToken& token) {
  if (at_ + 1 >= text_.size()) return false;
  const char kind = after(1);
  at_ += 2;
  switch (kind) {
    case 'Q':
    case 'E': return false;
    case 'x': return read_hexadecimal(token);
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
      token.refers = true;
      if (here() == '{') return skip_to('}');
      if (here() == '<') return skip_to('>');
      if (here() == '\'') {
        ++at_;
        return skip_to('\'');
      }
      if (here() == '-' || here() == '+') ++at_;
      break;
    case 'R':
    case 'X': token.refers = true; return true;
    case 'A':
    case 'b':
    case 'B':
    case 'G':
    case 'K':
    case 'z':
    case 'Z': token.is_empty = true; return true;
    case 'a': token.literal = 0x07; return true;
    case 'e': token.literal = 0x1b; return true;
    case 'f': token.literal = '\f'; return true;
    case 'n': token.literal = '\n'; return true;
    case 'r': token.literal = '\r'; return true;
    case 't': token.literal = '\t'; return true;
    default:
      if (is_letter(kind)) return true;  // a character class
      if (!is_digit(kind)) {
        token.literal = static_cast<unsigned char>(kind);
        return true;
      }
      token.refers = kind != '0';
      break;
  }
  while (is_digit(here())) ++at_;
  return true;
}

bool ExpressionTokens::read_hexadecimal(ExpressionToken& token) {
  int value = 0;
  if (here() == '{') {
    for (++at_; hex_value(here()) >= 0 && value < 256; ++at_) value = value * 16 + hex_value(here());
    if (value < 256) token.literal = value;
    return skip_to('}');
  }
  for (int digits = 0; digits < 2 && hex_value(here()) >= 0; ++digits, ++at_) value = value * 16 + hex_value(here());
  token.literal = value;
  return true;
}

bool ExpressionTokens::skip_to(char end) {
  const std::size_t found = text_.find(end, at_);
  if (found == text_.npos) return false;
  at_ = found + 1;
  return true;
}

bool ExpressionTokens::read_class() {
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
      if (found == text_.npos) return false;  // whether it is a POSIX class is not decided here
      at_ = found + 2;
    } else {
      ++at_;
    }
  }
  if (at_ >= text_.size()) return false;
  ++at_;
  return true;
}

/// `*`, `+`, `?`, `{n}`, `{n,}`, `{n,m}`, optionally followed by `+` or `?`. Any other brace is a literal.
void ExpressionTokens::read_quantifier(ExpressionQuantifier& found) {
  constexpr auto kAny = ExpressionQuantifier::kAnyNumber;
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint16_t>::max();  // PCRE2's
  std::size_t end = at_;
  const auto number = [&](std::uint32_t& value) {
    const std::size_t begin = end;
    for (value = 0; end < text_.size() && is_digit(text_[end]); ++end) {
      value = std::min<std::uint32_t>(value * 10 + static_cast<std::uint32_t>(text_[end] - '0'), kMost);
    }
    return end > begin;
  };
  std::uint32_t least = 0, most = kAny;
  switch (here()) {
    case '*': ++end; break;
    case '+':
      least = 1;
      ++end;
      break;
    case '?':
      most = 1;
      ++end;
      break;
    case '{':
      ++end;
      if (!number(least)) return;
      most = least;
      if (end < text_.size() && text_[end] == ',') {
        ++end;
        if (!number(most)) most = kAny;
      }
      if (end >= text_.size() || text_[end] != '}') return;
      ++end;
      break;
    default: return;
  }
  const std::size_t suffix = end;
  if (end < text_.size() && (text_[end] == '+' || text_[end] == '?')) ++end;
  found = {text_.substr(at_, end - at_), least, most, text_.substr(suffix, end - suffix)};
  at_ = end;
}

}  // namespace penstock::nids
