// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/lpm_corpus.h"

#include <zlib.h>

#include <charconv>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "base/text_file.h"
#include "nf/router/route_entry.h"

namespace penstock::router {
namespace {

std::string read_gz(const std::string& name) {
  const char* corpus = std::getenv("PENSTOCK_CORPUS");
  const std::string path = (corpus != nullptr ? corpus : PENSTOCK_SOURCE_DIR "/../shared/data") + ("/lpm/" + name);
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(::gzopen(path.c_str(), "rb"), ::gzclose);
  std::string text;
  if (file == nullptr) return text;
  char block[1 << 16];
  int count;
  while ((count = ::gzread(file.get(), block, sizeof block)) > 0) text.append(block, static_cast<std::size_t>(count));
  if (count < 0) throw std::runtime_error("cannot read " + path);
  return text;
}

template <typename T, typename Parse>
std::vector<T> read_lines(const std::string& name, Parse parse) {
  const std::string text = read_gz(name);
  std::vector<T> result;
  std::vector<Word> words;
  LineReader lines(text);
  for (Line line; lines.next(line);) {
    split_words(line.text, words);
    std::uint32_t value = kNoRoute;
    if (words.size() < 2) throw std::runtime_error(name + ": a line is too short");
    const auto key = parse(words[0].text);
    const std::string_view number = words[1].text;
    const bool has_value = number != "-";
    if (!key || (has_value && std::from_chars(number.data(), number.data() + number.size(), value).ec != std::errc())) {
      throw std::runtime_error(name + ":" + std::to_string(line.number) + ": not understood");
    }
    result.push_back({*key, value});
  }
  return result;
}

}  // namespace

std::vector<Route4> corpus_routes4() { return read_lines<Route4>("full_v4.txt.gz", parse_ipv4_prefix); }
std::vector<Route6> corpus_routes6() { return read_lines<Route6>("full_v6.txt.gz", parse_ipv6_prefix); }
std::vector<Match4> corpus_matches4() { return read_lines<Match4>("full_v4.lookups.gz", parse_ipv4); }
std::vector<Match6> corpus_matches6() { return read_lines<Match6>("full_v6.lookups.gz", parse_ipv6); }

}  // namespace penstock::router
