// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/classbench_reader.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "base/error_list.h"
#include "base/text_file.h"
#include "base/units.h"
#include "nf/firewall/rule_text.h"
#include "packet/ip.h"

namespace penstock::firewall {

namespace {

constexpr std::string_view kShape = "@SOURCE DESTINATION LOW : HIGH LOW : HIGH PROTOCOL/MASK [FLAGS/MASK]";

struct Masked {
  std::uint16_t value = 0, mask = 0;
};

std::optional<Masked> parse_masked(std::string_view text, std::uint64_t most) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto value = parse_integer(text.substr(0, slash));
  const auto mask = parse_integer(text.substr(slash + 1));
  if (!value || !mask || *value > most || *mask > most) return std::nullopt;
  return Masked{static_cast<std::uint16_t>(*value), static_cast<std::uint16_t>(*mask)};
}

class ClassBenchReader {
 public:
  ClassBenchReader(const std::string& file, const ReadOptions& options)
      : file_(file), options_(options), target_(options.match.value_or(classify::Target::accept)) {
    read_.value.file = file;
    read_.value.ipv4_policy = read_.value.ipv6_policy = options.policy.value_or(classify::Target::drop);
  }

  Result<Read<classify::Ruleset>> read(std::string_view text) {
    LineReader lines(text);
    for (Line line; lines.next(line);) {
      const std::string_view content = trimmed(line.text);
      if (content.empty() || content.front() == '#') continue;
      line_ = line.number;
      if (read_.value.rules.size() == options_.most_rules) return failure(too_many_rules({file_, line_, 0}, options_));
      read_rule(line.text);
      read_.value.rules.back().text = content;
    }
    if (!mistakes_.empty()) return failure(std::move(mistakes_).take({file_, 0, 0}));
    return std::move(read_);
  }

 private:
  void mistake(const Word& word, std::string_view message, std::string_view expected) {
    mistakes_.add({{file_, line_, word.column}, std::string(message), in_quotes(word.text), std::string(expected)});
  }

  void read_rule(std::string_view line) {
    const auto rule = static_cast<std::uint32_t>(read_.value.rules.size());
    read_.value.rules.push_back({line_, target_, false, {}});
    conditions_.clear();
    split_words(line, words_);
    const bool shaped = (words_.size() == 9 || words_.size() == 10) && words_[0].text.front() == '@' &&
                        words_[3].text == ":" && words_[6].text == ":";
    if (!shaped) return mistake({trimmed(line), 1}, "not a ClassBench rule", kShape);

    const std::optional<NetworkLayer> source = read_address({words_[0].text.substr(1), words_[0].column + 1}, true);
    const std::optional<NetworkLayer> destination = read_address(words_[1], false);
    if (source && destination && *source != *destination) {
      mistake(words_[1], "source and destination are of different address families",
              *source == NetworkLayer::ipv4 ? "an IPv4 prefix" : "an IPv6 prefix");
    }
    read_ports(classify::Subject::source_port, 2);
    read_ports(classify::Subject::destination_port, 5);
    const std::optional<Masked> protocol = parse_masked(words_[8].text, 0xff);
    if (!protocol) return mistake(words_[8], "wrong protocol", "PROTOCOL/MASK of numbers up to 255, such as 0x06/0xFF");
    if (protocol->mask != 0) {
      conditions_.push_back(classify::protocol_condition(static_cast<std::uint8_t>(protocol->value),
                                                         static_cast<std::uint8_t>(protocol->mask), false));
    }
    if (words_.size() == 10 && !read_flags(*protocol)) {
      read_.value.rules[rule].left_out = true;
      return;
    }
    classify::Entry entry;
    entry.family = source.value_or(NetworkLayer::ipv4);
    entry.action = classify::action_of(target_);
    entry.rule = rule;
    classify::add_entry(read_.value, conditions_, entry);
  }

  std::optional<NetworkLayer> read_address(const Word& word, bool source) {
    const std::optional<AddressRange> range = parse_address(word.text);
    if (!range) {
      mistake(word, "wrong address", "an IPv4 or IPv6 prefix");
      return std::nullopt;
    }
    if (!range->everything()) conditions_.push_back(address_condition(read_.value, *range, source, false));
    return range->family;
  }

  /// words_[at] : words_[at + 2]
  void read_ports(classify::Subject subject, std::size_t at) {
    const auto low = parse_integer(words_[at].text);
    const auto high = parse_integer(words_[at + 2].text);
    if (!low || *low > 0xffff) return mistake(words_[at], "wrong port", "a number up to 65535");
    if (!high || *high > 0xffff) return mistake(words_[at + 2], "wrong port", "a number up to 65535");
    if (*low > *high) return mistake(words_[at + 2], "a port range that ends before it begins", "LOW : HIGH");
    if (*low == 0 && *high == 0xffff) return;
    conditions_.push_back(classify::port_condition(
        read_.value, subject, {{static_cast<std::uint16_t>(*low), static_cast<std::uint16_t>(*high)}}, false));
  }

  /// False if the rule is left out because of its flags.
  bool read_flags(const Masked& protocol) {
    const std::optional<Masked> flags = parse_masked(words_[9].text, 0xffff);
    if (!flags) {
      mistake(words_[9], "wrong flags", "FLAGS/MASK of numbers up to 65535, such as 0x0200/0x1200");
      return true;
    }
    if (flags->mask == 0) return true;
    if (protocol.mask == 0xff && protocol.value == ip_protocol::kTcp && (flags->mask & 0xff) == 0) {
      conditions_.push_back(classify::tcp_flags_condition(static_cast<std::uint8_t>(flags->value >> 8),
                                                          static_cast<std::uint8_t>(flags->mask >> 8), false));
      return true;
    }
    if (protocol.mask == 0xff && (protocol.value == ip_protocol::kIcmp || protocol.value == ip_protocol::kIcmpv6)) {
      conditions_.push_back(
          classify::icmp_condition(static_cast<std::uint8_t>(protocol.value), flags->value, flags->mask, false));
      return true;
    }
    read_.unsupported.push_back(
        {{file_, line_, words_[9].column},
         fmt::format("rule {} is left out: its protocol has no flags", read_.value.rules.size() - 1),
         in_quotes(words_[9].text),
         "0x0000/0x0000, or flags of TCP or ICMP"});
    return false;
  }

  const std::string& file_;
  const ReadOptions& options_;
  classify::Target target_;
  Read<classify::Ruleset> read_;
  ErrorList mistakes_;
  std::uint32_t line_ = 0;
  std::vector<Word> words_;
  std::vector<classify::Condition> conditions_;
};

}  // namespace

Result<Read<classify::Ruleset>> read_classbench(std::string_view text, const std::string& file,
                                                const ReadOptions& options) {
  return ClassBenchReader(file, options).read(text);
}

}  // namespace penstock::firewall
