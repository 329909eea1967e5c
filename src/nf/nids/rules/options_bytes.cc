// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Options about numbers in buffers: byte_test, byte_jump, byte_extract, byte_math. Also isdataat, bsize, base64, and
// the options that name a buffer.

#include <array>
#include <limits>
#include <optional>

#include "base/units.h"
#include "nf/nids/rules/options.h"

namespace penstock::nids {

namespace {

// The longest texts of numbers that fit into 64 bits: octal with a leading zero, decimal, hexadecimal.
constexpr std::int64_t kMostTextBytes = 23;
constexpr std::int64_t kMostDecimalBytes = 20;
constexpr std::int64_t kMostHexBytes = 14;
constexpr std::int64_t kMostBinaryBytes = 8;
constexpr std::int64_t kMostOffset = 65535;

/// The words that these options have in common: `string`, its base, the byte order, `relative`.
struct Encoding {
  bool relative = false;
  bool text = false;
  bool has_order = false;
  ByteOrder order = ByteOrder::big;
  std::optional<NumberText> base;

  /// False if the word is none of these, or is wrong (the draft then has a complaint).
  bool take(RuleDraft& draft, std::string_view word, bool& known) {
    known = true;
    if (word == "relative") {
      relative = true;
    } else if (word == "string") {
      text = true;
    } else if (word == "hex") {
      return set_base(draft, word, NumberText::hexadecimal);
    } else if (word == "dec") {
      return set_base(draft, word, NumberText::decimal);
    } else if (word == "oct") {
      return set_base(draft, word, NumberText::octal);
    } else if (word == "big" || word == "little") {
      if (has_order) return draft.fail_combination(word, "second byte order");
      has_order = true;
      order = word == "big" ? ByteOrder::big : ByteOrder::little;
    } else if (word == "dce") {
      return draft.fail_unsupported(word, "byte order dce");
    } else {
      known = false;
    }
    return true;
  }

  bool set_base(RuleDraft& draft, std::string_view word, NumberText which) {
    if (base) return draft.fail_combination(word, "second base");
    base = which;
    return true;
  }

  /// `without`: the base of `string` if none is given.
  [[nodiscard]] NumberText number_text(NumberText without) const noexcept {
    return text ? base.value_or(without) : NumberText::none;
  }

  bool check(RuleDraft& draft, const OptionValue& value, const Number& bytes, std::int64_t least) const {
    if (base && !text) return draft.fail_combination(value.text, "base for a binary number", "string");
    const std::int64_t most = !text                             ? kMostBinaryBytes
                              : base == NumberText::hexadecimal ? kMostHexBytes
                              : base == NumberText::decimal     ? kMostDecimalBytes
                                                                : kMostTextBytes;
    if (bytes.variable < 0 && (bytes.value < least || bytes.value > most)) {
      return draft.fail(value.text, "wrong number of bytes", std::to_string(bytes.value),
                        std::to_string(least) + " to " + std::to_string(most), "value");
    }
    return true;
  }
};

bool unknown_word(RuleDraft& draft, std::string_view word) {
  return draft.fail(word, "unknown word", in_quotes(word), "a keyword of this option");
}

bool few_words(RuleDraft& draft, const OptionValue& value, const char* expected) {
  return draft.fail(value.text, "too few values", in_quotes(value.text), expected);
}

/// The value after a keyword, as in "multiplier 4".
std::optional<std::string_view> value_after(std::string_view field, std::string_view keyword) {
  if (!field.starts_with(keyword)) return std::nullopt;
  const std::string_view rest = field.substr(keyword.size());
  if (rest.empty() || (rest.front() != ' ' && rest.front() != '\t')) return std::nullopt;
  return trimmed(rest);
}

bool read_bitmask(RuleDraft& draft, std::string_view text, std::uint32_t& out) {
  const bool has_prefix = text.starts_with("0x") || text.starts_with("0X");
  const std::string prefixed = has_prefix ? std::string(text) : "0x" + std::string(text);
  const auto value = parse_integer(prefixed);
  if (!value || *value == 0 || *value > 0xffffffff) {
    return draft.fail(text, "wrong bitmask", in_quotes(text), "0x1 to 0xffffffff", "value");
  }
  out = static_cast<std::uint32_t>(*value);
  return true;
}

bool read_test_operator(RuleDraft& draft, std::string_view text, ByteTest& test) {
  using Operator = ByteTest::Operator;
  const std::string_view whole = text;
  if (text.starts_with('!')) {
    test.negated = true;
    text = trimmed(text.substr(1));
  }
  if (text == "<") {
    test.operation = Operator::less;
  } else if (text == ">") {
    test.operation = Operator::greater;
  } else if (text == "=" || (test.negated && text.empty())) {
    test.operation = Operator::equal;
  } else if (text == "<=") {
    test.operation = Operator::less_equal;
  } else if (text == ">=") {
    test.operation = Operator::greater_equal;
  } else if (text == "&") {
    test.operation = Operator::bit_and;
  } else if (text == "^") {
    test.operation = Operator::bit_xor;
  } else {
    return draft.fail(whole, "unknown operator", in_quotes(whole), "< > = <= >= & ^, or one of them after !");
  }
  return true;
}

/// An unsigned 64-bit number; `value` holds its bit pattern.
bool read_test_value(RuleDraft& draft, std::string_view text, Number& out) {
  if (text.empty() || text.front() < '0' || text.front() > '9') {
    return read_number(draft, text, 0, std::numeric_limits<std::int64_t>::max(), "value", out);
  }
  std::uint64_t value = 0;
  if (!read_unsigned(draft, text, 0, std::numeric_limits<std::uint64_t>::max(), "value", value)) return false;
  out.value = static_cast<std::int64_t>(value);
  return true;
}

std::optional<ByteMath::Operator> math_operator(std::string_view text) noexcept {
  using Operator = ByteMath::Operator;
  if (text == "+") return Operator::add;
  if (text == "-") return Operator::subtract;
  if (text == "*") return Operator::multiply;
  if (text == "/") return Operator::divide;
  if (text == "<<") return Operator::shift_left;
  if (text == ">>") return Operator::shift_right;
  return std::nullopt;
}

}  // namespace

/// `10`, `!10,relative`, `len,relative`
bool read_isdataat(RuleDraft& draft, const OptionValue& value) {
  IsDataAt match;
  match.negated = value.negated;
  const std::vector<std::string_view> fields = split_fields(value.text);
  if (!read_number(draft, fields[0], 0, kMostOffset, "position", match.position)) return false;
  for (std::size_t i = 1; i < fields.size(); ++i) {
    if (fields[i] == "relative") {
      match.relative = true;
    } else if (fields[i] != "rawbytes") {
      return unknown_word(draft, fields[i]);
    }
  }
  if (match.relative) {
    const BufferMatch* before = draft.last_cursor();
    const Content* content = before == nullptr ? nullptr : std::get_if<Content>(before);
    if (content != nullptr && content->fast_pattern_only) {
      return draft.fail_combination(value.name, "relative to a content that is fast_pattern:only");
    }
  }
  draft.add(match);
  return true;
}

bool read_bsize(RuleDraft& draft, const OptionValue& value) {
  if (draft.buffer() == Buffer::payload) {
    return draft.fail_combination(value.name, "bsize of the payload", "an option before it that names a buffer");
  }
  Bsize match;
  if (!read_range(draft, value.text, std::numeric_limits<std::uint64_t>::max(), "size", match.range)) return false;
  draft.add(match);
  return true;
}

/// `bytes, operator, value, offset [, relative] [, big|little] [, string, hex|dec|oct] [, bitmask 0xff]`
bool read_byte_test(RuleDraft& draft, const OptionValue& value) {
  const std::vector<std::string_view> fields = split_fields(value.text);
  if (fields.size() < 4) return few_words(draft, value, "bytes, operator, value, offset");
  ByteTest match;
  Encoding encoding;
  if (!read_number(draft, fields[0], 1, kMostTextBytes, "number of bytes", match.bytes) ||
      !read_test_operator(draft, fields[1], match) || !read_test_value(draft, fields[2], match.value) ||
      !read_number(draft, fields[3], -kMostOffset, kMostOffset, "offset", match.offset)) {
    return false;
  }
  for (std::size_t i = 4; i < fields.size(); ++i) {
    if (const auto mask = value_after(fields[i], "bitmask")) {
      if (!read_bitmask(draft, *mask, match.bitmask)) return false;
      continue;
    }
    bool known = false;
    if (!encoding.take(draft, fields[i], known)) return false;
    if (!known) return unknown_word(draft, fields[i]);
  }
  if (!encoding.check(draft, value, match.bytes, 1)) return false;
  match.relative = encoding.relative;
  match.order = encoding.order;
  match.text = encoding.number_text(NumberText::automatic);
  draft.add(match);
  return true;
}

/// `bytes, offset [, relative] [, multiplier 4] [, big|little] [, string, hex|dec|oct] [, align] [, from_beginning]
/// [, from_end] [, post_offset 2] [, bitmask 0xff]`
bool read_byte_jump(RuleDraft& draft, const OptionValue& value) {
  const std::vector<std::string_view> fields = split_fields(value.text);
  if (fields.size() < 2) return few_words(draft, value, "bytes, offset");
  ByteJump match;
  Encoding encoding;
  if (!read_number(draft, fields[0], 0, kMostTextBytes, "number of bytes", match.bytes) ||
      !read_number(draft, fields[1], -kMostOffset, kMostOffset, "offset", match.offset)) {
    return false;
  }
  for (std::size_t i = 2; i < fields.size(); ++i) {
    const std::string_view field = fields[i];
    if (const auto mask = value_after(field, "bitmask")) {
      if (!read_bitmask(draft, *mask, match.bitmask)) return false;
    } else if (const auto factor = value_after(field, "multiplier")) {
      std::uint64_t multiplier = 0;
      if (!read_unsigned(draft, *factor, 1, 65535, "multiplier", multiplier)) return false;
      match.multiplier = static_cast<std::uint32_t>(multiplier);
    } else if (const auto post = value_after(field, "post_offset")) {
      if (!read_number(draft, *post, -kMostOffset, kMostOffset, "post_offset", match.post_offset)) return false;
    } else if (field == "align") {
      match.align = true;
    } else if (field == "from_beginning") {
      match.from_beginning = true;
    } else if (field == "from_end") {
      match.from_end = true;
    } else {
      bool known = false;
      if (!encoding.take(draft, field, known)) return false;
      if (!known) return unknown_word(draft, field);
    }
  }
  if (match.from_beginning && match.from_end) {
    return draft.fail_combination(value.text, "from_beginning together with from_end");
  }
  if (!encoding.check(draft, value, match.bytes, 0)) return false;
  match.relative = encoding.relative;
  match.order = encoding.order;
  match.text = encoding.number_text(NumberText::automatic);
  draft.add(match);
  return true;
}

/// `bytes, offset, name [, relative] [, multiplier 4] [, big|little] [, string, hex|dec|oct] [, align 2|4]`
bool read_byte_extract(RuleDraft& draft, const OptionValue& value) {
  const std::vector<std::string_view> fields = split_fields(value.text);
  if (fields.size() < 3) return few_words(draft, value, "bytes, offset, name");
  ByteExtract match;
  Encoding encoding;
  Number bytes;
  std::int64_t offset = 0;
  if (!read_signed(draft, fields[0], 1, kMostTextBytes, "number of bytes", bytes.value) ||
      !read_signed(draft, fields[1], -kMostOffset, kMostOffset, "offset", offset)) {
    return false;
  }
  for (std::size_t i = 3; i < fields.size(); ++i) {
    const std::string_view field = fields[i];
    if (const auto factor = value_after(field, "multiplier")) {
      std::uint64_t multiplier = 0;
      if (!read_unsigned(draft, *factor, 1, 65535, "multiplier", multiplier)) return false;
      match.multiplier = static_cast<std::uint32_t>(multiplier);
    } else if (const auto align = value_after(field, "align")) {
      if (*align != "2" && *align != "4")
        return draft.fail(*align, "wrong align", in_quotes(*align), "2 or 4", "value");
      match.align = *align == "2" ? 2 : 4;
    } else {
      bool known = false;
      if (!encoding.take(draft, field, known)) return false;
      if (!known) return unknown_word(draft, field);
    }
  }
  if (!encoding.check(draft, value, bytes, 1)) return false;
  if (!draft.make_variable(fields[2], match.variable)) return false;
  match.bytes = static_cast<std::uint8_t>(bytes.value);
  match.offset = static_cast<std::int32_t>(offset);
  match.relative = encoding.relative;
  match.order = encoding.order;
  match.text = encoding.number_text(NumberText::decimal);
  draft.add(match);
  return true;
}

/// `bytes 2, offset 0, oper +, rvalue 1, result name [, relative] [, endian big|little] [, string hex|dec|oct]
/// [, bitmask 0xff]`, in any order
bool read_byte_math(RuleDraft& draft, const OptionValue& value) {
  constexpr std::int64_t kMostMathBytes = 10;
  ByteMath match;
  Encoding encoding;
  std::string_view result;
  bool has_bytes = false, has_offset = false, has_operator = false, has_value = false;
  for (const std::string_view field : split_fields(value.text)) {
    if (const auto bytes = value_after(field, "bytes")) {
      has_bytes = true;
      if (!read_number(draft, *bytes, 1, kMostMathBytes, "number of bytes", match.bytes)) return false;
    } else if (const auto offset = value_after(field, "offset")) {
      has_offset = true;
      if (!read_number(draft, *offset, -kMostOffset, kMostOffset, "offset", match.offset)) return false;
    } else if (const auto oper = value_after(field, "oper")) {
      const auto operation = math_operator(*oper);
      if (!operation) return draft.fail(*oper, "unknown operator", in_quotes(*oper), "+ - * / << >>");
      has_operator = true;
      match.operation = *operation;
    } else if (const auto right = value_after(field, "rvalue")) {
      has_value = true;
      if (!read_number(draft, *right, 0, 0xffffffff, "rvalue", match.value)) return false;
    } else if (const auto name = value_after(field, "result")) {
      result = *name;
    } else if (const auto mask = value_after(field, "bitmask")) {
      if (!read_bitmask(draft, *mask, match.bitmask)) return false;
    } else {
      std::string_view word = field;
      if (const auto endian = value_after(field, "endian")) word = *endian;
      if (const auto base = value_after(field, "string")) {
        encoding.text = true;
        word = *base;
      }
      bool known = false;
      if (!encoding.take(draft, word, known)) return false;
      if (!known) return unknown_word(draft, field);
    }
  }
  if (!has_bytes || !has_offset || !has_operator || !has_value || result.empty()) {
    return few_words(draft, value, "bytes N, offset N, oper +, rvalue N, result NAME");
  }
  if (!encoding.check(draft, value, match.bytes, 1)) return false;
  if (match.operation == ByteMath::Operator::divide && match.value.variable < 0 && match.value.value == 0) {
    return draft.fail(value.text, "division by zero", in_quotes(value.text), "", "value");
  }
  if (!draft.make_variable(result, match.variable)) return false;
  match.relative = encoding.relative;
  match.order = encoding.order;
  match.text = encoding.number_text(NumberText::decimal);
  draft.add(match);
  return true;
}

/// `[bytes N] [, offset N] [, relative]`
bool read_base64_decode(RuleDraft& draft, const OptionValue& value) {
  if (draft.buffer() == Buffer::base64_data) {
    return draft.fail_combination(value.name, "base64_decode of decoded data");
  }
  Base64Decode match;
  if (!value.text.empty()) {
    for (const std::string_view field : split_fields(value.text)) {
      std::uint64_t number = 0;
      if (const auto bytes = value_after(field, "bytes")) {
        if (!read_unsigned(draft, *bytes, 1, 0xffffffff, "number of bytes", number)) return false;
        match.bytes = static_cast<std::uint32_t>(number);
      } else if (const auto offset = value_after(field, "offset")) {
        if (!read_unsigned(draft, *offset, 0, 0xffff, "offset", number)) return false;
        match.offset = static_cast<std::uint32_t>(number);
      } else if (field == "relative") {
        match.relative = true;
      } else {
        return unknown_word(draft, field);
      }
    }
  }
  draft.has_base64_decode = true;
  draft.add(match);
  return true;
}

/// `tcp.hdr;` and similar options: following options apply to this buffer.
bool read_buffer(RuleDraft& draft, const OptionValue& value) {
  struct Name {
    std::string_view name;
    Buffer buffer;
  };
  static constexpr std::array<Name, 8> kNames{{{"pkt_data", Buffer::payload},
                                               {"base64_data", Buffer::base64_data},
                                               {"ipv4.hdr", Buffer::ipv4_header},
                                               {"ipv6.hdr", Buffer::ipv6_header},
                                               {"tcp.hdr", Buffer::tcp_header},
                                               {"udp.hdr", Buffer::udp_header},
                                               {"icmpv4.hdr", Buffer::icmpv4_header},
                                               {"icmpv6.hdr", Buffer::icmpv6_header}}};
  for (const Name& name : kNames) {
    if (!equals_ignoring_case(name.name, value.name)) continue;
    const RuleProtocol protocol = draft.rule.protocol;
    if (name.buffer == Buffer::base64_data && !draft.has_base64_decode) {
      return draft.fail_combination(value.name, "base64_data without base64_decode", "base64_decode before it");
    }
    const bool may_be_tcp = protocol == RuleProtocol::tcp || protocol == RuleProtocol::tcp_pkt ||
                            protocol == RuleProtocol::tcp_stream || protocol == RuleProtocol::ip ||
                            protocol == RuleProtocol::ipv4 || protocol == RuleProtocol::ipv6 ||
                            protocol == RuleProtocol::pkthdr;
    const bool may_be_udp = protocol == RuleProtocol::udp || protocol == RuleProtocol::ip ||
                            protocol == RuleProtocol::ipv4 || protocol == RuleProtocol::ipv6 ||
                            protocol == RuleProtocol::pkthdr;
    if ((name.buffer == Buffer::tcp_header && !may_be_tcp) || (name.buffer == Buffer::udp_header && !may_be_udp)) {
      return draft.fail_combination(value.name, "header of a protocol other than the rule's");
    }
    draft.look_at(name.buffer);
    return true;
  }
  return draft.fail_unsupported(value.name, value.name);
}

}  // namespace penstock::nids
