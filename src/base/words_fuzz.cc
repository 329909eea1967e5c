// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Feeds arbitrary text to the readers of single words (numbers with units, lists of CPUs, addresses, prefixes), and to
// the splitters of lines and words. An address that is read must be the same after it is printed and read again.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/cpu_list.h"
#include "base/error.h"
#include "base/ip_address.h"
#include "base/text_file.h"
#include "base/units.h"

using namespace penstock;

namespace {

template <typename Parse>
void read_back(std::string_view text, Parse parse) {
  const auto once = parse(text);
  if (once && parse(to_string(*once)) != once) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Line line;
  for (LineReader lines(text); lines.next(line);) {
    for (const Word& word : split_words(line.text)) {
      if (line.text.substr(word.column - 1, word.text.size()) != word.text) std::abort();
      static_cast<void>(parse_size(word.text));
      static_cast<void>(parse_duration(word.text));
      static_cast<void>(parse_rate(word.text));
      static_cast<void>(parse_integer(word.text));
      static_cast<void>(parse_number(word.text));
      if (const auto cpus = parse_cpu_list(word.text); cpus && parse_cpu_list(format_cpu_list(*cpus)) != cpus)
        std::abort();
      read_back(word.text, parse_ipv4);
      read_back(word.text, parse_ipv6);
      read_back(word.text, parse_ipv4_prefix);
      read_back(word.text, parse_ipv6_prefix);
      if (in_quotes(word.text).size() > 4 * 60 + 8) std::abort();
    }
  }
  return 0;
}
