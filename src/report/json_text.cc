// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/json_text.h"

#include <array>

namespace penstock::report {

namespace {

constexpr std::string_view kHex = "0123456789abcdef";

/// The length in bytes of the UTF-8 sequence at the start of `text` (RFC 3629 §4); 0 if it is invalid.
std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const auto in = [](unsigned value, unsigned first, unsigned last) { return value >= first && value <= last; };
  const auto follows = [&](std::size_t i) { return in(byte(i), 0x80, 0xbf); };
  const unsigned first = byte(0);
  if (in(first, 0xc2, 0xdf)) return follows(1) ? 2 : 0;
  if (in(first, 0xe0, 0xef)) {
    const bool second = in(byte(1), first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf);
    return second && follows(2) ? 3 : 0;
  }
  if (in(first, 0xf0, 0xf4)) {
    const bool second = in(byte(1), first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf);
    return second && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

constexpr bool is_plain(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

/// For ASCII characters that must be escaped.
void append_escape(std::string& out, char c) {
  out.push_back('\\');
  switch (c) {
    case '"':
    case '\\': out.push_back(c); return;
    case '\b': out.push_back('b'); return;
    case '\f': out.push_back('f'); return;
    case '\n': out.push_back('n'); return;
    case '\r': out.push_back('r'); return;
    case '\t': out.push_back('t'); return;
    default: break;
  }
  const auto byte = static_cast<unsigned char>(c);
  out.append("u00");
  out.push_back(kHex[byte >> 4]);
  out.push_back(kHex[byte & 15]);
}

}  // namespace

void append_json_escaped(std::string& out, std::string_view text) {
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() && is_plain(text[plain])) ++plain;
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) return;
    std::size_t length = 1;
    if (const auto byte = static_cast<unsigned char>(text.front()); byte < 0x80) {
      append_escape(out, text.front());
    } else if (const std::size_t utf8 = utf8_length(text); utf8 > 0) {
      length = utf8;
      out.append(text.substr(0, length));
    } else {
      out.append("\\\\x");
      out.push_back(kHex[byte >> 4]);
      out.push_back(kHex[byte & 15]);
    }
    text.remove_prefix(length);
  }
}

void append_base64(std::string& out, std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::size_t had = out.size();
  out.resize(had + (bytes.size() + 2) / 3 * 4);
  char* to = out.data() + had;
  const auto digits = [&](std::uint32_t three) {
    for (const int shift : {18, 12, 6, 0}) *to++ = kDigits[three >> shift & 63];
  };
  std::size_t i = 0;
  for (; i + 3 <= bytes.size(); i += 3) {
    digits(std::uint32_t{bytes[i]} << 16 | std::uint32_t{bytes[i + 1]} << 8 | bytes[i + 2]);
  }
  const std::size_t left = bytes.size() - i;
  if (left == 0) return;
  digits(std::uint32_t{bytes[i]} << 16 | (left == 2 ? std::uint32_t{bytes[i + 1]} << 8 : 0));
  to[-1] = '=';
  if (left == 1) to[-2] = '=';
}

void append_number(std::string& out, std::uint64_t number) {
  std::array<char, 20> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  out.append(text.data(), end);
}

void JsonText::open_array_escaped(std::string_view key) {
  comma();
  quoted(key);
  out_->append(":[");
}

}  // namespace penstock::report
