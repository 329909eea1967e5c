// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rule options that test the bytes of a buffer. They are tested in order; a relative option starts where the previous
// one ended. Meanings are Suricata's (its user guide, "Payload Keywords").

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace penstock::nids {

/// The source of the bytes. Application-layer buffers (http.uri …) will join this list: the detection requests a buffer
/// by its name, and does not know how its bytes are obtained.
enum class Buffer : std::uint8_t {
  payload,  // of the packet, the stream, or both, as the rule's protocol and options require
  base64_data,
  ipv4_header,
  ipv6_header,
  tcp_header,
  udp_header,
  icmpv4_header,
  icmpv6_header,
};

/// A number in the rule, or one that byte_extract or byte_math has read.
struct Number {
  std::int64_t value = 0;
  int variable = -1;  // index of the rule's variable; -1: use `value`
};

struct Content {
  std::vector<std::uint8_t> bytes;
  bool negated = false;
  bool nocase = false;
  std::optional<Number> offset;            // from the buffer's start
  std::optional<Number> depth;             // as written; the match lies in [offset, offset + depth)
  std::optional<Number> distance, within;  // from the end of the previous match
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
  /// What the expression is matched against: its buffer, or, with the flags U and I, the normalised or raw targets of
  /// the HTTP requests whose request lines are in the buffer. Other options cannot be relative to a match in a target.
  enum class Of : std::uint8_t { buffer, request_target, raw_request_target };
  Of of = Of::buffer;
};

struct IsDataAt {
  Number position;
  bool negated = false;
  bool relative = false;
};

enum class ByteOrder : std::uint8_t { big, little };
/// The base of `string`. none: a binary number. automatic: the base that strtoull detects with base 0.
enum class NumberText : std::uint8_t { none, hexadecimal, decimal, octal, automatic };

struct ByteTest {
  enum class Operator : std::uint8_t { less, greater, equal, less_equal, greater_equal, bit_and, bit_xor };
  Number bytes;
  Operator operation = Operator::equal;
  bool negated = false;  // the operator's `!`
  Number value;          // compared as unsigned 64-bit numbers
  Number offset;
  bool relative = false;
  ByteOrder order = ByteOrder::big;
  NumberText text = NumberText::none;
  std::uint32_t bitmask = 0;  // 0: none; the masked value is shifted right by the mask's trailing zeros
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
  std::uint32_t bytes = 0;  // 0: all that are available
  std::uint32_t offset = 0;
  bool relative = false;
};

/// One number, a bound, or a range that excludes its ends (as in `dsize:10<>20`).
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
  std::uint64_t second = 0;  // of between and not_between
};

/// Tests the buffer's length.
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
