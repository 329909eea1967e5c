// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/tuple_reader.h"

#include <fmt/format.h>

#include <optional>

#include "base/error_list.h"
#include "base/text_file.h"
#include "base/units.h"
#include "nf/firewall/rule_text.h"

namespace penstock::firewall {

namespace {

class TupleReader {
 public:
  explicit TupleReader(const std::string& file) : file_(file) {}

  Result<std::vector<classify::Key>> read(std::string_view text, std::uint32_t first_line) {
    std::vector<classify::Key> keys;
    std::vector<Word> words;
    LineReader lines(text, first_line);
    for (Line line; lines.next(line);) {
      split_words(line.text, words);
      if (words.empty() || words.front().text.front() == '#') continue;
      line_ = line.number;
      keys.push_back(read_tuple(words, line.text));
    }
    if (!mistakes_.empty()) return failure(std::move(mistakes_).take({file_, 0, 0}));
    return keys;
  }

 private:
  void mistake(const Word& word, std::string_view message, std::string_view expected) {
    mistakes_.add({{file_, line_, word.column}, std::string(message), in_quotes(word.text), std::string(expected)});
  }

  classify::Key read_tuple(const std::vector<Word>& words, std::string_view line) {
    classify::Key key;
    if (words.size() != 5) {
      mistake({line, 1}, fmt::format("tuple of {} word{}", words.size(), words.size() == 1 ? "" : "s"),
              "SOURCE DESTINATION PROTOCOL SOURCE-PORT DESTINATION-PORT");
      return key;
    }
    key.source = read_address(words[0], key.family);
    NetworkLayer family = NetworkLayer::none;
    key.destination = read_address(words[1], family);
    if (key.family != NetworkLayer::none && family != NetworkLayer::none && family != key.family) {
      mistake(words[1], "source and destination are of different address families",
              key.family == NetworkLayer::ipv4 ? "an IPv4 address" : "an IPv6 address");
    }
    const std::optional<std::uint8_t> protocol = parse_protocol(words[2].text);
    if (!protocol) mistake(words[2], "unknown protocol", "tcp, udp, icmp, … or a number up to 255");
    key.kind = classify::kKindAnyDetail + protocol.value_or(0);
    key.source_port = read_port(words[3]);
    key.destination_port = read_port(words[4]);
    return key;
  }

  Ipv6Address read_address(const Word& word, NetworkLayer& family) {
    if (const auto ipv4 = parse_ipv4(word.text)) {
      family = NetworkLayer::ipv4;
      return {0, ipv4->bits};
    }
    if (const auto ipv6 = parse_ipv6(word.text)) {
      family = NetworkLayer::ipv6;
      return *ipv6;
    }
    mistake(word, "wrong address", "an IPv4 or IPv6 address");
    return {};
  }

  std::uint32_t read_port(const Word& word) {
    const auto port = parse_integer(word.text);
    if (!port || *port > 0xffff) {
      mistake(word, "wrong port", "a number up to 65535");
      return 0;
    }
    return static_cast<std::uint32_t>(*port);
  }

  const std::string& file_;
  ErrorList mistakes_;
  std::uint32_t line_ = 0;
};

}  // namespace

Result<std::vector<classify::Key>> read_tuples(std::string_view text, const std::string& file,
                                               std::uint32_t first_line) {
  return TupleReader(file).read(text, first_line);
}

}  // namespace penstock::firewall
