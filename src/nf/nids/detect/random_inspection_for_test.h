// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random byte options, and buffers of few letters, in which they often match at many positions.

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "nf/nids/detect/matches_for_test.h"

namespace penstock::nids {

inline std::string quoted(std::span<const std::uint8_t> bytes) {
  std::string text = "\"";
  for (const std::uint8_t byte : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    if (byte >= 0x20 && byte < 0x7f) {
      text += static_cast<char>(byte);
    } else {
      text += {'|', kDigits[byte >> 4], kDigits[byte & 15], '|'};
    }
  }
  return text + '"';
}

/// The text of an option, for failure messages.
inline std::string text_of(const BufferMatch& match) {
  std::ostringstream out;
  const auto number = [&](const char* name, const std::optional<Number>& of) {
    if (!of) return;
    out << ' ' << name << ' ';
    if (of->variable < 0) {
      out << of->value;
    } else {
      out << 'v' << of->variable;
    }
  };
  const auto flag = [&](const char* name, bool is) { out << (is ? name : ""); };
  if (const auto* const c = std::get_if<Content>(&match)) {
    out << "content" << (c->negated ? " !" : " ") << quoted(c->bytes);
    number("offset", c->offset);
    number("depth", c->depth);
    number("distance", c->distance);
    number("within", c->within);
    flag(" nocase", c->nocase);
    flag(" endswith", c->ends_with);
    flag(" startswith", c->starts_with);
  } else if (const auto* const p = std::get_if<Pcre>(&match)) {
    out << "pcre " << (p->negated ? "!" : "") << p->pattern << (p->relative ? " R" : "");
  } else if (const auto* const d = std::get_if<IsDataAt>(&match)) {
    number("isdataat", d->position);
    flag(" not", d->negated);
    flag(" relative", d->relative);
  } else if (const auto* const t = std::get_if<ByteTest>(&match)) {
    number("byte_test", t->bytes);
    out << " op " << static_cast<int>(t->operation);
    number("value", t->value);
    number("offset", t->offset);
    flag(" not", t->negated);
    flag(" relative", t->relative);
    flag(" text", t->text != NumberText::none);
  } else if (const auto* const j = std::get_if<ByteJump>(&match)) {
    number("byte_jump", j->bytes);
    number("offset", j->offset);
    number("post_offset", j->post_offset);
    flag(" relative", j->relative);
    flag(" from_beginning", j->from_beginning);
    flag(" from_end", j->from_end);
    flag(" align", j->align);
    flag(" text", j->text != NumberText::none);
  } else if (const auto* const e = std::get_if<ByteExtract>(&match)) {
    out << "byte_extract " << int{e->bytes} << " offset " << e->offset << " v" << e->variable;
    flag(" relative", e->relative);
  } else if (const auto* const m = std::get_if<ByteMath>(&match)) {
    number("byte_math", m->bytes);
    number("offset", m->offset);
    out << " op " << static_cast<int>(m->operation);
    number("value", m->value);
    out << " v" << m->variable;
    flag(" relative", m->relative);
  } else {
    out << "bsize";
  }
  return out.str();
}

/// `Random`: a call returns a number of any width.
template <typename Random>
class RandomInspection {
 public:
  explicit RandomInspection(Random random) : random_(std::move(random)) {}

  std::vector<std::uint8_t> buffer(unsigned most) {
    std::vector<std::uint8_t> made(below(most + 1));
    for (std::uint8_t& byte : made) byte = letter();
    return made;
  }

  /// `complete`: only options that Suricata tries at all positions that could help.
  std::vector<BufferMatch> options(bool complete) {
    std::vector<BufferMatch> made;
    variables_ = 0;
    bool hidden = false;
    for (unsigned left = 1 + below(5); left > 0;) {
      BufferMatch next = option(complete);
      // Options before a negated content or pcre are not tried again.
      if (complete && hidden && is_relative(next)) continue;
      if (is_pattern(next)) hidden = is_negated(next);
      made.push_back(std::move(next));
      --left;
    }
    return made;
  }

 private:
  unsigned below(unsigned end) { return static_cast<unsigned>(random_() % end); }
  std::int64_t between(int first, int last) {
    return first + static_cast<int>(below(static_cast<unsigned>(last - first + 1)));
  }
  bool one_in(unsigned n) { return below(n) == 0; }
  std::uint8_t letter() {
    constexpr std::array<std::uint8_t, 8> kLetters{'a', 'b', 'a', 'B', 1, 2, '1', '2'};
    return kLetters[below(one_in(3) ? 8 : 2)];
  }

  static bool is_pattern(const BufferMatch& match) {
    return std::holds_alternative<Content>(match) || std::holds_alternative<Pcre>(match);
  }
  static bool is_negated(const BufferMatch& match) {
    return std::visit(
        [](const auto& o) {
          if constexpr (requires { o.negated; }) return o.negated;
          return false;
        },
        match);
  }
  static bool is_relative(const BufferMatch& match) {
    return std::visit(
        [](const auto& o) {
          if constexpr (requires { o.distance; }) {
            return o.distance || o.within;
          } else if constexpr (requires { o.relative; }) {
            return o.relative;
          }
          return false;
        },
        match);
  }

  Number any_number(int first, int last, bool complete) {
    if (!complete && variables_ > 0 && one_in(3)) return variable(static_cast<int>(below(variables_)));
    return number(between(first, last));
  }

  BufferMatch option(bool complete) {
    switch (below(12)) {
      case 0: {
        constexpr std::array<const char*, 8> kPatterns{"a", "ab", "a+b", "b?a", "(a|ba)b", "ab|a", "[ab]1", "a*"};
        auto made = pcre(kPatterns[below(kPatterns.size())]);
        made.option.relative = one_in(2);
        made.option.negated = one_in(5);
        return made;
      }
      case 1: {
        auto made = isdataat(any_number(0, 6, complete));
        made.option.negated = one_in(2);
        made.option.relative = !complete && one_in(2);
        return made;
      }
      case 2: {
        auto made = byte_test(between(1, 2), static_cast<ByteTest::Operator>(below(7)), between(0, 3), between(-2, 4));
        made.option.relative = one_in(2);
        made.option.negated = one_in(4);
        made.option.value = any_number(0, 'b', complete);
        common(made.option);
        return made;
      }
      case 3: {
        auto made = byte_jump(between(1, 2), between(-2, 4));
        made.option.relative = one_in(2);
        made.option.post_offset = number(one_in(2) ? 0 : between(-100, 3));
        made.option.from_end = one_in(4);
        made.option.from_beginning = !made.option.from_end && one_in(4);
        made.option.align = one_in(4);
        if (one_in(3)) made.option.multiplier = 2;
        common(made.option);
        return made;
      }
      case 4: {
        auto made = byte_extract(static_cast<std::uint8_t>(between(1, 2)), static_cast<int>(between(-2, 4)), next());
        made.option.relative = one_in(2);
        if (one_in(4)) made.option.multiplier = 3;
        if (one_in(4)) made.option.align = 4;
        if (one_in(3)) made.option.text = NumberText::decimal;
        return made;
      }
      case 5: {
        // The variable is not used before it has a value.
        const Number by = any_number(0, 3, complete);
        auto made = byte_math(between(1, 2), between(-2, 4), static_cast<ByteMath::Operator>(below(6)), by, next());
        made.option.relative = one_in(2);
        common(made.option);
        return made;
      }
      default: return random_content(complete);
    }
  }

  template <typename Option>
  void common(Option& option) {
    if (one_in(3)) option.text = one_in(2) ? NumberText::decimal : NumberText::hexadecimal;
    if (one_in(3)) option.order = ByteOrder::little;
    if (one_in(4)) option.bitmask = one_in(2) ? 0x06 : 0xff00;
  }

  BufferMatch random_content(bool complete) {
    std::vector<std::uint8_t> bytes(1 + below(one_in(4) ? 3 : 2));
    for (std::uint8_t& byte : bytes) byte = letter();
    auto made = content({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const int length = static_cast<int>(bytes.size());
    made.option.nocase = one_in(3);
    made.option.negated = one_in(5);
    made.option.ends_with = one_in(8);
    switch (below(5)) {
      case 0: break;
      case 1:
        made = made.offset(any_number(0, 6, complete));
        if (one_in(2)) made = made.depth(any_number(length, length + 4, complete));
        break;
      case 2: made = one_in(3) ? made.starts_with() : made.depth(any_number(length, length + 4, complete)); break;
      default:
        if (!one_in(3)) made = made.distance(any_number(-6, 4, complete));
        if (!made.option.distance || one_in(2)) made = made.within(any_number(length, length + 3, complete));
    }
    return made;
  }

  int next() { return static_cast<int>(variables_ == 4 ? below(4) : variables_++); }

  Random random_;
  unsigned variables_ = 0;
};

}  // namespace penstock::nids
