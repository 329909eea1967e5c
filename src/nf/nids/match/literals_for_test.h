// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Literals and texts for tests and benches, and a naive search as the reference.

#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nf/nids/match/pattern_matcher.h"

namespace penstock::nids::testing {

using Bytes = std::vector<std::uint8_t>;
using Found = std::set<std::uint32_t>;

inline Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }
inline Literal literal(std::string_view text, bool nocase = false) { return {bytes_of(text), nocase}; }

inline std::uint8_t lower(std::uint8_t byte) {
  return byte >= 'A' && byte <= 'Z' ? static_cast<std::uint8_t>(byte + 32) : byte;
}

inline bool occurs(const Literal& literal, std::span<const std::uint8_t> text) {
  return std::search(text.begin(), text.end(), literal.bytes.begin(), literal.bytes.end(),
                     [&](std::uint8_t a, std::uint8_t b) { return literal.nocase ? lower(a) == lower(b) : a == b; }) !=
         text.end();
}

/// Tries every literal at every position.
inline Found search(std::span<const Literal> literals, std::span<const std::uint8_t> text) {
  Found found;
  for (std::uint32_t i = 0; i < literals.size(); ++i) {
    if (occurs(literals[i], text)) found.insert(i);
  }
  return found;
}

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }
  bool one_in(std::uint32_t times) { return below(times) == 0; }

  /// Bytes from an alphabet; few letters make overlaps likely.
  Bytes bytes(std::size_t length, std::string_view alphabet) {
    Bytes bytes(length);
    for (std::uint8_t& byte : bytes) {
      byte = static_cast<std::uint8_t>(alphabet[below(static_cast<std::uint32_t>(alphabet.size()))]);
    }
    return bytes;
  }
  Bytes bytes(std::size_t length) {
    Bytes bytes(length);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random_());
    return bytes;
  }

  /// A literal of words as in requests, of numbers, or of anything, with the lengths of fast patterns in rules.
  Literal rule_literal() {
    static constexpr std::string_view kLetters =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/.-_=?&%: ";
    const std::size_t length = one_in(60) ? 2 + below(2) : 4 + below(18);
    return {one_in(3) ? bytes(length) : bytes(length, kLetters), one_in(3)};
  }

  /// Puts the literal somewhere into `text`.
  void plant(const Literal& literal, Bytes& text) {
    if (text.size() < literal.bytes.size()) return;
    const auto at = below(static_cast<std::uint32_t>(text.size() - literal.bytes.size() + 1));
    plant_at(literal, text, at);
  }
  void plant_at(const Literal& literal, Bytes& text, std::size_t at) {
    for (std::size_t i = 0; i < literal.bytes.size(); ++i) {
      std::uint8_t byte = literal.bytes[i];
      const bool letter = (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
      if (literal.nocase && letter && one_in(2)) byte ^= 0x20;
      text[at + i] = byte;
    }
  }

  /// Data like an HTTP message, zeros, counters, or noise, in turn.
  Bytes traffic(std::size_t length) {
    static constexpr std::string_view kMessages[] = {
        "GET /index.php?id=1&page=home HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: Mozilla/5.0 (Windows NT 10.0; "
        "Win64; x64) AppleWebKit/537.36\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate\r\nConnection: "
        "keep-alive\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 5120\r\nServer: "
        "nginx\r\n\r\n<html>"
        "<head><title>The page</title><script type=\"text/javascript\" src=\"/js/app.js\"></script></head><body>",
    };
    Bytes text;
    while (text.size() < length) {
      const std::uint32_t what = below(8);
      Bytes piece;
      if (what < 4) {
        piece = bytes_of(kMessages[what % 2]);
      } else if (what == 4) {
        piece.assign(20 + below(100), std::uint8_t{0});
      } else if (what == 5) {
        for (std::uint32_t i = 0, n = 10 + below(40); i < n; ++i) {
          piece.insert(piece.end(), {0, 0, 0, static_cast<std::uint8_t>(i)});
        }
      } else {
        piece = bytes(50 + below(400));
      }
      text.insert(text.end(), piece.begin(), piece.end());
    }
    text.resize(length);
    return text;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace penstock::nids::testing
