// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/match/rarity.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string_view>
#include <unordered_set>

#include "nf/nids/match/text_core.h"

namespace penstock::nids {

namespace {

/// How much more frequent than 1/256 a byte is, as a power of two: headers and padding are zeros, much else is text.
constexpr std::array<std::int8_t, 256> kByteCommonness = [] {
  std::array<std::int8_t, 256> table{};
  const auto set = [&](std::string_view bytes, int value) {
    for (const char byte : bytes) table[static_cast<std::uint8_t>(byte)] = static_cast<std::int8_t>(value);
  };
  for (unsigned byte = 0x01; byte < 0x20; ++byte) table[byte] = 1;
  for (unsigned byte = 0x20; byte < 0x7f; ++byte) table[byte] = 1;
  set("abcdefghijklmnopqrstuvwxyz", 2);
  set("eotainsrlcdp", 3);
  set("jqxz", 1);
  set("0123456789", 2);
  set("\r\n/.-:=\"", 2);
  set(" \xff\x01", 3);
  set(std::string_view("\0", 1), 5);
  return table;
}();

constexpr int kRepeated = 2;       // a byte equal to its predecessor
constexpr int kInBoilerplate = 8;  // four bytes that occur in nearly all connections of some protocol

/// Frequent strings of text protocols, in lower case.
constexpr std::string_view kBoilerplate =
    "http/1.0\r\n http/1.1\r\nhost: www. .com\r\n\r\nuser-agent: mozilla/4.0 mozilla/5.0 (compatible; msie windows nt "
    "(x11; linux applewebkit/537.36 (khtml, like gecko) chrome/ safari/ firefox/\r\naccept: */*\r\naccept-language: "
    "en-us\r\naccept-encoding: gzip, deflate\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: \r\n"
    "connection: keep-alive\r\ncache-control: no-cache\r\nreferer: http:// https://www.\r\ncookie: server: apache\r\n"
    "date: last-modified: etag: location: application/x-www-form-urlencoded\r\napplication/json image/ .html .php "
    ".asp .gif .jpg .png .css .js index. <html> <head> <title> <body> <div class=\"</div> <span <table <script "
    "type=\"text/javascript\" src=\"href=\"http://www. = function() var document.window. get / post / the and ";

std::uint32_t quad_of(std::string_view text) {
  std::uint32_t quad = 0;
  std::memcpy(&quad, text.data(), sizeof(quad));
  return quad;
}

bool is_boilerplate(std::uint32_t folded_quad) {
  static const std::unordered_set<std::uint32_t> kQuads = [] {
    std::unordered_set<std::uint32_t> all;
    for (std::size_t at = 0; at + 4 <= kBoilerplate.size(); ++at) all.insert(quad_of(kBoilerplate.substr(at, 4)));
    return all;
  }();
  return kQuads.contains(folded_quad);
}

}  // namespace

int commonness(std::span<const std::uint8_t> bytes) {
  int sum = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::uint8_t byte = folded(bytes[i]);
    sum += kByteCommonness[byte] - 8;
    if (i > 0 && byte == folded(bytes[i - 1])) sum += kRepeated;
    if (i + 4 <= bytes.size()) {
      const auto quad = static_cast<std::uint32_t>(load_up_to_8(bytes.data() + i, bytes.data() + i + 4));
      if (is_boilerplate(folded(quad))) sum += kInBoilerplate;
    }
  }
  return sum;
}

std::span<const std::uint8_t> rarest_part(std::span<const std::uint8_t> bytes, std::size_t length) {
  constexpr std::size_t kMostPlaces = 1024;
  if (bytes.size() <= length) return bytes;
  std::span<const std::uint8_t> best = bytes.first(length);
  int least = std::numeric_limits<int>::max();
  for (std::size_t at = 0; at < kMostPlaces && at + length <= bytes.size(); ++at) {
    const auto window = bytes.subspan(at, length);
    if (const int common = commonness(window); common < least) {
      least = common;
      best = window;
    }
  }
  return best;
}

std::vector<Literal> cut_literals(std::span<const Literal> literals) {
  std::vector<Literal> cuts;
  cuts.reserve(literals.size());
  for (const Literal& literal : literals) {
    const auto part = rarest_part(literal.bytes, kCutLiteralBytes);
    cuts.push_back({{part.begin(), part.end()}, literal.nocase});
  }
  return cuts;
}

}  // namespace penstock::nids
