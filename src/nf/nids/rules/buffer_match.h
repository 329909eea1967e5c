// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rule options that look at the bytes of a buffer, one after the other, each from where the one before it ended where
// it is relative. Meanings are Suricata's (its user guide, "Payload Keywords").

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace penstock::nids {

/// Where bytes come from. Application-layer buffers (http.uri …) join this list: the detection asks for a buffer's
/// bytes by its name and knows nothing of where they come from.
enum class Buffer : std::uint8_t {
  payload,  // the packet's, the stream's, or both, as the rule's protocol and options need
  base64_data,
  ipv4_header,
  ipv6_header,
  tcp_header,
  udp_header,
  icmpv4_header,
  icmpv6_header,
};

/// A number of the rule, or one that byte_extract or byte_math found before.
struct Number {
  std::int64_t value = 0;
  int variable = -1;  // index of the rule's variables; -1: `value` it is
};

struct Content {
  std::vector<std::uint8_t> bytes;
  bool negated = false;
  bool nocase = false;
  std::optional<Number> offset;            // from the buffer's start
  std::optional<Number> depth;             // from `offset` on, as written: the match lies in [offset, offset + depth)
  std::optional<Number> distance, within;  // from where the match before ended
  bool starts_with = false;
  bool ends_with = false;
  bool fast_pattern = false;
  bool fast_pattern_only = false;
  std::optional<std::uint16_t> chop_offset, chop_length;  // fast_pattern:offset,length
};

struct Pcre {
  std::string pattern;  // between the delimiters
  bool negated = false;
  bool caseless = false, multiline = false, dotall = false, extended = false;  // i m s x
  bool anchored = false, dollar_endonly = false, ungreedy = false;             // A E G
  bool relative = false;                                                       // R
  /// What it looks at: its buffer; by the flags U and I, the targets of the HTTP requests whose lines lie in there, as
  /// the server takes them or as they came. It then is nothing that others can be relative to.
  enum class Of : std::uint8_t { buffer, request_target, raw_request_target };
  Of of = Of::buffer;
};

struct IsDataAt {
  Number position;
  bool negated = false;
  bool relative = false;
};

enum class ByteOrder : std::uint8_t { big, little };
/// `string` with its base; none: a binary number. automatic: as strtoull with base 0 reads it.
enum class NumberText : std::uint8_t { none, hexadecimal, decimal, octal, automatic };

struct ByteTest {
  enum class Operator : std::uint8_t { less, greater, equal, less_equal, greater_equal, bit_and, bit_xor };
  Number bytes;
  Operator operation = Operator::equal;
  bool negated = false;  // the operator's `!`
  Number value;          // compared as 64 bits without a sign
  Number offset;
  bool relative = false;
  ByteOrder order = ByteOrder::big;
  NumberText text = NumberText::none;
  std::uint32_t bitmask = 0;  // 0: none; the result is shifted right by its trailing zeros
};

struct ByteJump {
  Number bytes;
  Number offset;
  bool relative = false;
  ByteOrder order = ByteOrder::big;
  NumberText text = NumberText::none;
  std::uint32_t bitmask = 0;
  std::uint32_t multiplier = 1;
  bool align = false;
  bool from_beginning = false;
  bool from_end = false;
  Number post_offset;
};

struct ByteExtract {
  std::uint8_t bytes = 0;
  std::int32_t offset = 0;
  int variable = 0;
  bool relative = false;
  ByteOrder order = ByteOrder::big;
  NumberText text = NumberText::none;
  std::uint32_t multiplier = 1;
  std::uint8_t align = 0;  // 0, 2 or 4
};

struct ByteMath {
  enum class Operator : std::uint8_t { add, subtract, multiply, divide, shift_left, shift_right };
  Number bytes;
  Number offset;
  Operator operation = Operator::add;
  Number value;
  int variable = 0;
  bool relative = false;
  ByteOrder order = ByteOrder::big;
  NumberText text = NumberText::none;
  std::uint32_t bitmask = 0;
};

/// Decodes into the rule's base64_data buffer.
struct Base64Decode {
  std::uint32_t bytes = 0;  // 0: all there are
  std::uint32_t offset = 0;
  bool relative = false;
};

/// One number, a bound, or a range without its ends (as `dsize:10<>20` has it).
struct NumberRange {
  enum class Operator : std::uint8_t {
    equal,
    not_equal,
    less,
    less_equal,
    greater,
    greater_equal,
    between,
    not_between
  };
  Operator operation = Operator::equal;
  std::uint64_t first = 0;
  std::uint64_t second = 0;  // of between
};

/// Of the buffer's length.
struct Bsize {
  NumberRange range;
};

using BufferMatch =
    std::variant<Content, Pcre, IsDataAt, ByteTest, ByteJump, ByteExtract, ByteMath, Base64Decode, Bsize>;

struct BufferMatches {
  Buffer buffer = Buffer::payload;
  std::vector<BufferMatch> matches;
};

}  // namespace penstock::nids
