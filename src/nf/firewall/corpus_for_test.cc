// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/corpus_for_test.h"

#include <zlib.h>

#include <cstdlib>
#include <sstream>

#include "base/text_file.h"

namespace penstock::firewall {

namespace {

std::optional<std::string> gzip_text(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");  // reads plain files too
  if (file == nullptr) return std::nullopt;
  std::string text;
  char chunk[1 << 16];
  for (int got = 0; (got = gzread(file, chunk, sizeof chunk)) > 0;) text.append(chunk, static_cast<std::size_t>(got));
  gzclose(file);
  return text;
}

Ipv6Address parse_decimal(std::string_view text) {
  Ipv6Address n;
  for (const char c : text) {
    // n * 10 + digit, in pieces of 32 bits.
    std::uint64_t carry = static_cast<std::uint64_t>(c - '0');
    std::uint64_t pieces[4] = {n.low & 0xffffffff, n.low >> 32, n.high & 0xffffffff, n.high >> 32};
    for (std::uint64_t& piece : pieces) {
      piece = piece * 10 + carry;
      carry = piece >> 32;
      piece &= 0xffffffff;
    }
    n = {pieces[3] << 32 | pieces[2], pieces[1] << 32 | pieces[0]};
  }
  return n;
}

}  // namespace

std::optional<std::string> corpus_text(const std::string& path) {
  const char* corpus = std::getenv("PENSTOCK_CORPUS");
  const std::string root = corpus != nullptr ? corpus : PENSTOCK_SOURCE_DIR "/../shared/data";
  if (auto text = gzip_text(root + "/" + path)) return text;
  return gzip_text(root + "/" + path + ".gz");
}

std::vector<classify::Key> trace_keys(const std::string& text, NetworkLayer family) {
  std::vector<classify::Key> keys;
  std::vector<Word> words;
  LineReader lines(text);
  for (Line line; lines.next(line);) {
    split_words(line.text, words);
    if (words.size() < 5) continue;
    const auto number = [&](std::size_t i) { return static_cast<std::uint32_t>(parse_decimal(words[i].text).low); };
    classify::Key key;
    key.family = family;
    key.source = parse_decimal(words[0].text);
    key.destination = parse_decimal(words[1].text);
    key.source_port = number(2);
    key.destination_port = number(3);
    key.kind = classify::kKindAnyDetail + number(4);
    keys.push_back(key);
  }
  return keys;
}

std::optional<CorpusSet> corpus_set(const std::string& name) {
  const bool large = name.ends_with("100k");
  const auto file = [&](const char* kind) { return corpus_text("classify/" + name + (large ? "." : "_") + kind); };
  auto rules = large ? file("rules") : corpus_text("classify/" + name);
  if (!rules) return std::nullopt;
  CorpusSet set;
  set.rules = std::move(*rules);
  const bool ipv6 = name.find("v6") != std::string::npos;
  if (const auto trace = file("trace")) set.keys = trace_keys(*trace, ipv6 ? NetworkLayer::ipv6 : NetworkLayer::ipv4);
  if (const auto truth = file("truth")) {
    std::istringstream lines(*truth);
    for (std::int64_t index = 0; lines >> index;) set.truth.push_back(index);
  }
  return set;
}

}  // namespace penstock::firewall
