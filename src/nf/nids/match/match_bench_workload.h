// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The literals and texts of the matchers' benches. PENSTOCK_BENCH_RULES names a rule file whose fast patterns are the
// literals; without it, literals are drawn at random. PENSTOCK_BENCH_CAPTURE names a capture (pcap, optionally gzipped)
// whose payloads are the text; without it, the text is drawn.

#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "nf/nids/match/literals_for_test.h"
#include "packet/parse_core.h"

namespace penstock::nids::testing {

/// The bytes of `content:"..."`, with |hexadecimal| and escapes resolved; empty if it is malformed.
inline Bytes content_bytes(std::string_view text) {
  Bytes bytes;
  bool hex = false;
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '|') {
      hex = !hex;
    } else if (!hex) {
      if (text[i] == '\\' && i + 1 < text.size()) ++i;
      bytes.push_back(static_cast<std::uint8_t>(text[i]));
    } else if (text[i] != ' ') {
      digits += text[i];
      if (digits.size() == 2) {
        bytes.push_back(static_cast<std::uint8_t>(std::strtoul(digits.c_str(), nullptr, 16)));
        digits.clear();
      }
    }
  }
  return bytes;
}

/// The content of each rule that is marked `fast_pattern`, or else the longest; each literal once.
inline std::vector<Literal> literals_of_rules(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  std::set<Literal> seen;
  std::vector<Literal> literals;
  std::vector<char> buffer(std::size_t{1} << 16);
  while (file != nullptr && gzgets(file, buffer.data(), static_cast<int>(buffer.size())) != nullptr) {
    const std::string line = buffer.data();
    if (!line.starts_with("alert") && !line.starts_with("drop")) continue;
    Literal best;
    bool marked = false;
    for (std::size_t at = 0; (at = line.find("content:", at)) != std::string::npos;) {
      at += std::string_view("content:").size();
      const std::size_t quote = line.find('"', at);
      if (quote == std::string::npos) break;
      const bool negated = line.find('!', at) < quote;
      std::size_t end = quote + 1;
      while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
      if (end >= line.size()) break;
      const Bytes bytes = content_bytes(std::string_view(line).substr(quote + 1, end - quote - 1));
      std::size_t next = std::min(line.find("content:", end), line.find("pcre:", end));
      const std::string_view modifiers = std::string_view(line).substr(end, next - end);
      const bool mark = modifiers.find("fast_pattern") != std::string_view::npos;
      if (!negated && !bytes.empty() && !marked && (mark || bytes.size() > best.bytes.size())) {
        best = {bytes, modifiers.find("nocase") != std::string_view::npos};
        marked = mark;
      }
      at = end;
    }
    if (!best.bytes.empty() && seen.insert(best).second) literals.push_back(best);
  }
  if (file != nullptr) gzclose(file);
  return literals;
}

/// The TCP and UDP payloads of a capture, concatenated: `bytes` bytes, repeated from the beginning if there are fewer.
inline Bytes payloads_of_capture(const std::string& path, std::size_t bytes) {
  Bytes text;
  while (text.size() < bytes) {
    const gzFile file = gzopen(path.c_str(), "rb");
    std::uint32_t header[6] = {};
    const std::size_t before = text.size();
    if (file == nullptr || gzread(file, header, sizeof(header)) != static_cast<int>(sizeof(header))) return text;
    std::uint32_t record[4] = {};
    Bytes frame;
    while (text.size() < bytes && gzread(file, record, sizeof(record)) == static_cast<int>(sizeof(record))) {
      if (record[2] > 1 << 18) break;
      frame.resize(record[2]);
      if (gzread(file, frame.data(), record[2]) != static_cast<int>(record[2])) break;
      const PacketLayout layout = parse(frame.data(), record[2], record[3], LinkType::ethernet);
      if (!layout.has(PacketLayout::kTransportHeader)) continue;
      text.insert(text.end(), frame.begin() + layout.payload_offset, frame.begin() + layout.end);
    }
    gzclose(file);
    if (text.size() == before) break;
  }
  text.resize(std::min(text.size(), bytes));
  return text;
}

/// At most `count` literals, from the rules or drawn.
inline std::vector<Literal> bench_literals(std::size_t count) {
  std::vector<Literal> literals;
  if (const char* const path = std::getenv("PENSTOCK_BENCH_RULES")) literals = literals_of_rules(path);
  if (literals.empty()) {
    Draw draw(1);
    std::set<Literal> seen;
    while (literals.size() < count) {
      if (Literal literal = draw.rule_literal(); seen.insert(literal).second) literals.push_back(std::move(literal));
    }
    return literals;
  }
  // Spread over the file, since its parts differ in kind.
  std::vector<Literal> chosen;
  const std::size_t have = literals.size();
  for (std::size_t i = 0; i < std::min(count, have); ++i) chosen.push_back(literals[i * have / std::min(count, have)]);
  return chosen;
}

inline Bytes bench_text(std::size_t bytes) {
  Bytes text;
  if (const char* const path = std::getenv("PENSTOCK_BENCH_CAPTURE")) text = payloads_of_capture(path, bytes);
  if (text.size() == bytes) return text;
  return Draw(2).traffic(bytes);
}

}  // namespace penstock::nids::testing
