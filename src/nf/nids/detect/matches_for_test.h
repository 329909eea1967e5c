// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Byte options, written similarly to rules: content("abc").distance(1).within(5).

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nf/nids/rules/buffer_match.h"

namespace penstock::nids {

inline Number variable(int index) { return {0, index}; }
inline Number number(std::int64_t value) { return {value, -1}; }

inline std::vector<std::uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

/// An option that can be modified: `with([](ByteTest& o) { o.relative = true; })`.
template <typename Option>
struct OptionForTest {
  Option option;

  template <typename Change>
  [[nodiscard]] OptionForTest with(Change&& change) const {
    OptionForTest changed = *this;
    change(changed.option);
    return changed;
  }
  [[nodiscard]] OptionForTest relative() const {
    return with([](Option& o) { o.relative = true; });
  }
  [[nodiscard]] OptionForTest negated() const {
    return with([](Option& o) { o.negated = true; });
  }
  [[nodiscard]] OptionForTest text(NumberText text) const {
    return with([&](Option& o) { o.text = text; });
  }
  operator BufferMatch() const { return option; }  // NOLINT(google-explicit-constructor)
};

struct ContentForTest {
  Content option;

  template <typename Change>
  [[nodiscard]] ContentForTest with(Change&& change) const {
    ContentForTest changed = *this;
    change(changed.option);
    return changed;
  }
  [[nodiscard]] ContentForTest negated() const {
    return with([](Content& c) { c.negated = true; });
  }
  [[nodiscard]] ContentForTest nocase() const {
    return with([](Content& c) { c.nocase = true; });
  }
  [[nodiscard]] ContentForTest offset(Number n) const {
    return with([&](Content& c) { c.offset = n; });
  }
  [[nodiscard]] ContentForTest offset(std::int64_t n) const { return offset(number(n)); }
  [[nodiscard]] ContentForTest depth(Number n) const {
    return with([&](Content& c) { c.depth = n; });
  }
  [[nodiscard]] ContentForTest depth(std::int64_t n) const { return depth(number(n)); }
  [[nodiscard]] ContentForTest distance(Number n) const {
    return with([&](Content& c) { c.distance = n; });
  }
  [[nodiscard]] ContentForTest distance(std::int64_t n) const { return distance(number(n)); }
  [[nodiscard]] ContentForTest within(Number n) const {
    return with([&](Content& c) { c.within = n; });
  }
  [[nodiscard]] ContentForTest within(std::int64_t n) const { return within(number(n)); }
  [[nodiscard]] ContentForTest starts_with() const {
    return with([](Content& c) { c.starts_with = true; });
  }
  [[nodiscard]] ContentForTest ends_with() const {
    return with([](Content& c) { c.ends_with = true; });
  }
  operator BufferMatch() const { return option; }  // NOLINT(google-explicit-constructor)
};

inline ContentForTest content(std::string_view text) {
  ContentForTest made;
  made.option.bytes = bytes_of(text);
  return made;
}

inline OptionForTest<Pcre> pcre(std::string pattern) {
  OptionForTest<Pcre> made;
  made.option.pattern = std::move(pattern);
  return made;
}

inline OptionForTest<IsDataAt> isdataat(Number position) {
  OptionForTest<IsDataAt> made;
  made.option.position = position;
  return made;
}
inline OptionForTest<IsDataAt> isdataat(std::int64_t position) { return isdataat(number(position)); }

inline OptionForTest<ByteTest> byte_test(std::int64_t bytes, ByteTest::Operator operation, Number value,
                                         std::int64_t offset) {
  OptionForTest<ByteTest> made;
  made.option.bytes = number(bytes);
  made.option.operation = operation;
  made.option.value = value;
  made.option.offset = number(offset);
  return made;
}
inline OptionForTest<ByteTest> byte_test(std::int64_t bytes, ByteTest::Operator operation, std::int64_t value,
                                         std::int64_t offset) {
  return byte_test(bytes, operation, number(value), offset);
}

inline OptionForTest<ByteJump> byte_jump(std::int64_t bytes, std::int64_t offset) {
  OptionForTest<ByteJump> made;
  made.option.bytes = number(bytes);
  made.option.offset = number(offset);
  return made;
}

inline OptionForTest<ByteExtract> byte_extract(std::uint8_t bytes, std::int32_t offset, int variable) {
  OptionForTest<ByteExtract> made;
  made.option.bytes = bytes;
  made.option.offset = offset;
  made.option.variable = variable;
  return made;
}

inline OptionForTest<ByteMath> byte_math(std::int64_t bytes, std::int64_t offset, ByteMath::Operator operation,
                                         Number value, int variable) {
  OptionForTest<ByteMath> made;
  made.option.bytes = number(bytes);
  made.option.offset = number(offset);
  made.option.operation = operation;
  made.option.value = value;
  made.option.variable = variable;
  return made;
}

inline OptionForTest<Base64Decode> base64_decode(std::uint32_t bytes = 0, std::uint32_t offset = 0) {
  OptionForTest<Base64Decode> made;
  made.option.bytes = bytes;
  made.option.offset = offset;
  return made;
}

inline BufferMatch bsize(NumberRange::Operator operation, std::uint64_t first, std::uint64_t second = 0) {
  return Bsize{{operation, first, second}};
}

}  // namespace penstock::nids
