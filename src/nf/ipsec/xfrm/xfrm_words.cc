// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/xfrm/xfrm_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <utility>

#include "base/units.h"

namespace penstock::ipsec {

namespace {

struct ProtocolName {
  std::string_view name;
  std::uint8_t number;
};

// From /etc/protocols, with which `ip` prints a selector's protocol: the names on which its systems agree.
constexpr auto kProtocols = std::to_array<ProtocolName>({
    {"icmp", 1},
    {"igmp", 2},
    {"ggp", 3},
    {"ipencap", 4},
    {"st", 5},
    {"tcp", 6},
    {"egp", 8},
    {"igp", 9},
    {"pup", 12},
    {"udp", 17},
    {"hmp", 20},
    {"xns-idp", 22},
    {"rdp", 27},
    {"iso-tp4", 29},
    {"dccp", 33},
    {"xtp", 36},
    {"ddp", 37},
    {"idpr-cmtp", 38},
    {"ipv6", 41},
    {"ipv6-route", 43},
    {"ipv6-frag", 44},
    {"idrp", 45},
    {"rsvp", 46},
    {"gre", 47},
    {"esp", 50},
    {"ah", 51},
    {"skip", 57},
    {"ipv6-icmp", 58},
    {"icmpv6", 58},
    {"ipv6-nonxt", 59},
    {"ipv6-opts", 60},
    {"rspf", 73},
    {"vmtp", 81},
    {"eigrp", 88},
    {"ospf", 89},
    {"ax.25", 93},
    {"ipip", 94},
    {"etherip", 97},
    {"encap", 98},
    {"pim", 103},
    {"ipcomp", 108},
    {"vrrp", 112},
    {"l2tp", 115},
    {"isis", 124},
    {"sctp", 132},
    {"fc", 133},
    {"mobility-header", 135},
    {"udplite", 136},
    {"mpls-in-ip", 137},
    {"manet", 138},
    {"hip", 139},
    {"shim6", 140},
    {"wesp", 141},
    {"rohc", 142},
    {"ethernet", 143},
});

constexpr std::uint8_t kMobilityHeader = 135;
constexpr std::uint8_t kGre = 47;

/// Runs or totals of digits above these limits may be a key and are not shown.
constexpr std::size_t kMostDigitsInARow = 7;
constexpr std::size_t kMostDigits = 24;

/// The whole text must parse as a value.
template <typename Value, typename Parse>
std::optional<Value> parsed(const Parse& parse, std::string_view text) {
  if (const auto value = parse(text)) return Value(*value);
  return std::nullopt;
}

std::optional<IpAddress> parse_address(std::string_view text) {
  if (text.find(':') != std::string_view::npos) return parsed<IpAddress>(parse_ipv6, text);
  return parsed<IpAddress>(parse_ipv4, text);
}

/// Like the kernel, accepts host bits and ignores them.
std::optional<IpPrefix> parse_selector_prefix(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto address = parse_address(text.substr(0, slash));
  const auto length = parse_integer(text.substr(slash + 1));
  if (!address || !length || *length > (is_ipv6(*address) ? 128 : 32)) return std::nullopt;
  const auto bits = static_cast<std::uint8_t>(*length);
  if (const auto* v4 = std::get_if<Ipv4Address>(&*address)) {
    return Ipv4Prefix{{v4->bits & ipv4_mask(bits)}, bits};
  }
  const auto& v6 = std::get<Ipv6Address>(*address);
  const Ipv6Address mask = ipv6_mask(bits);
  return Ipv6Prefix{{v6.high & mask.high, v6.low & mask.low}, bits};
}

/// Removes remarks: "(INF)(bytes)," and "0(0x00000000)" become the number alone.
std::string_view without_remark(std::string_view text) {
  if (text.ends_with(',')) text.remove_suffix(1);
  return text.substr(0, text.find('(', 1));
}

/// Parses exactly `count` digits at `at`: a part of a date or a time.
std::optional<int> digits(std::string_view text, std::size_t at, std::size_t count) {
  int value = 0;
  for (const char c : text.substr(at, count)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

std::optional<std::int64_t> parse_time(std::string_view date, std::string_view time) {
  if (date.size() != 10 || date[4] != '-' || date[7] != '-') return std::nullopt;
  if (time.size() != 8 || time[2] != ':' || time[5] != ':') return std::nullopt;
  const std::array<std::optional<int>, 6> parts{digits(date, 0, 4), digits(date, 5, 2), digits(date, 8, 2),
                                                digits(time, 0, 2), digits(time, 3, 2), digits(time, 6, 2)};
  if (!std::ranges::all_of(parts, [](const auto& part) { return part.has_value(); })) return std::nullopt;
  if (*parts[1] < 1 || *parts[1] > 12 || *parts[2] < 1 || *parts[2] > 31) return std::nullopt;
  if (*parts[3] > 23 || *parts[4] > 59 || *parts[5] > 60) return std::nullopt;
  std::tm calendar{};
  calendar.tm_year = *parts[0] - 1900;
  calendar.tm_mon = *parts[1] - 1;
  calendar.tm_mday = *parts[2];
  calendar.tm_hour = *parts[3];
  calendar.tm_min = *parts[4];
  calendar.tm_sec = *parts[5];
  calendar.tm_isdst = -1;
  return std::mktime(&calendar);
}

}  // namespace

std::string quoted_unless_key(std::string_view word) {
  std::string quoted = in_quotes(word);
  std::size_t all = 0;
  std::size_t row = 0;
  std::size_t longest = 0;
  for (const char c : quoted) {
    const bool digit = std::isxdigit(static_cast<unsigned char>(c)) != 0;
    row = digit ? row + 1 : 0;
    all += digit ? 1 : 0;
    longest = std::max(longest, row);
  }
  if (longest <= kMostDigitsInARow && all <= kMostDigits) return quoted;
  return fmt::format("a word of {} characters, hidden because it may be part of a key", word.size());
}

XfrmWords::XfrmWords(std::string_view text, std::string file, std::string_view object, std::size_t most_objects)
    : lines_(text), file_(std::move(file)), object_(object), most_objects_(most_objects) {
  // Reports text before the first object.
  bool said = false;
  while (!has_ahead_ && lines_.next(ahead_)) {
    split_words(ahead_.text, line_words_);
    if (line_words_.empty() || line_words_[0].text.front() == '#') continue;
    if (line_words_[0].text == "src") {
      has_ahead_ = true;
    } else if (!std::exchange(said, true)) {
      const Word& word = line_words_[0];
      error({word.text, ahead_.number, word.column}, fmt::format("not the start of an `ip xfrm` {}", object_),
            "src ADDRESS dst ADDRESS");
    }
  }
}

bool XfrmWords::next_object() {
  if (!has_ahead_) return false;
  if (++objects_ > most_objects_) {
    const std::string most = format_count(most_objects_);
    errors_.add(Error{{file_, ahead_.number, 0},
                      fmt::format("too many {} entries", object_),
                      "more than " + most,
                      fmt::format("at most {} (most_entries raises it)", most)});
    return false;
  }
  words_.clear();
  at_ = 0;
  good_ = true;
  add_words(ahead_);
  for (has_ahead_ = false; lines_.next(ahead_);) {
    split_words(ahead_.text, line_words_);
    if (line_words_.empty() || line_words_[0].text.front() == '#') continue;
    if (line_words_[0].text == "src") {
      has_ahead_ = true;
      break;
    }
    // The rest of an object that is too long is skipped.
    if (words_.size() <= kMostWords) add_words(ahead_);
  }
  if (words_.size() > kMostWords) {
    error(words_.front(), fmt::format("the {} has too many words", object_),
          fmt::format("at most {}", format_count(kMostWords)));
  }
  return true;
}

/// `ip -o` prints a backslash in place of a line break.
void XfrmWords::add_words(const Line& line) {
  std::uint32_t start = 0;
  for (const std::string_view part : split(line.text, '\\')) {
    split_words(part, line_words_);
    for (const Word& word : line_words_) words_.push_back({word.text, line.number, start + word.column});
    start += static_cast<std::uint32_t>(part.size()) + 1;
  }
}

XfrmWord XfrmWords::end() const noexcept {
  const XfrmWord& last = words_.back();
  return {{}, last.line, last.column + static_cast<std::uint32_t>(last.text.size())};
}

XfrmWord XfrmWords::take(std::string_view expected) {
  if (!at_end()) return words_[at_++];
  if (good_) error(end(), fmt::format("the {} is incomplete", object_), expected);
  return end();
}

bool XfrmWords::accept(std::string_view word) {
  if (at_end() || words_[at_].text != word) return false;
  ++at_;
  return true;
}

void XfrmWords::expect(std::string_view word) {
  const XfrmWord found = take(word);
  if (good_ && found.text != word) error(found, "unexpected word", word);
}

std::uint64_t XfrmWords::number(std::string_view what, std::uint64_t least, std::uint64_t most) {
  const XfrmWord word = take(what);
  if (!good_) return 0;
  const auto value = parse_integer(without_remark(word.text));
  if (value && *value >= least && *value <= most) return *value;
  error(word, fmt::format("not {}", what), fmt::format("{} to {}", least, most));
  return 0;
}

IpAddress XfrmWords::address() {
  const XfrmWord word = take("an IP address");
  if (!good_) return {};
  const auto address = parse_address(word.text);
  if (address) return *address;
  error(word, "not an address", "an IP address");
  return {};
}

std::optional<std::int64_t> XfrmWords::time() {
  if (accept("-")) return std::nullopt;
  const XfrmWord date = take("a date, or -");
  const XfrmWord time = take("a time");
  if (!good_) return std::nullopt;
  const auto seconds = parse_time(date.text, time.text);
  if (!seconds) error(date, "not a date and a time", "such as 2026-11-21 16:51:36, or -");
  return seconds;
}

std::uint8_t XfrmWords::protocol() {
  const XfrmWord word = take("a protocol");
  if (!good_) return 0;
  const auto known = std::ranges::find(kProtocols, word.text, &ProtocolName::name);
  if (known != kProtocols.end()) return known->number;
  const auto number = parse_integer(word.text);
  if (number && *number <= 255) return static_cast<std::uint8_t>(*number);
  error(word, "unknown protocol", "a name such as tcp, or 0 to 255");
  return 0;
}

IpPrefix XfrmWords::prefix() {
  const XfrmWord word = take("ADDRESS/LENGTH");
  if (!good_) return {};
  const auto prefix = parse_selector_prefix(word.text);
  if (prefix) return *prefix;
  error(word, "not a prefix", "ADDRESS/LENGTH");
  return {};
}

Selector XfrmWords::selector() {
  Selector selector;
  expect("src");
  selector.source = prefix();
  expect("dst");
  const XfrmWord destination = peek();
  selector.destination = prefix();
  if (good_ && is_ipv6(selector.source) != is_ipv6(selector.destination)) {
    error(destination, "source and destination are of different address families", "prefixes of one family");
  }
  if (accept("proto")) selector.protocol = protocol();
  const auto half = [&](std::string_view what) { return static_cast<std::uint16_t>(number(what, 0, 0xffff)); };
  if (accept("sport") || accept("type")) selector.source_port = half("a port or type");
  if (accept("dport") || accept("code")) selector.destination_port = half("a port or code");
  // A mobility header has no second value after its type.
  if (selector.protocol == kMobilityHeader && accept("(dport)")) static_cast<void>(take("a number"));
  if (selector.protocol == kGre && accept("key")) {
    const std::uint32_t key = number32("a key");
    selector.source_port = static_cast<std::uint16_t>(key >> 16);
    selector.destination_port = static_cast<std::uint16_t>(key & 0xffff);
  }
  if (accept("dev")) selector.device = take("a device").text;
  if (accept("uid")) static_cast<void>(number32("a number"));  // a socket's owner, which the kernel does not compare
  return selector;
}

std::uint64_t XfrmWords::limit() {
  if (!at_end() && peek().text.starts_with("(INF)")) {
    ++at_;
    return kUnlimited;
  }
  return number("a limit", 0, kUnlimited);
}

void XfrmWords::limits(Lifetimes& lifetimes, std::uint64_t Lifetime::*limit, std::string_view unit) {
  expect("limit:");
  expect("soft");
  if (good_ && peek().text.find(unit) == std::string_view::npos) return error(peek(), "unexpected unit", unit);
  lifetimes.soft.*limit = this->limit();
  expect("hard");
  lifetimes.hard.*limit = this->limit();
}

void XfrmWords::expiries(Lifetimes& lifetimes, std::uint64_t Lifetime::*limit) {
  expect("soft");
  lifetimes.soft.*limit = number("a number of seconds", 0, kUnlimited);
  expect("hard");
  lifetimes.hard.*limit = number("a number of seconds", 0, kUnlimited);
}

void XfrmWords::lifetime(Lifetimes& lifetimes) {
  if (accept("config:")) {
    limits(lifetimes, &Lifetime::bytes, "(bytes)");
    limits(lifetimes, &Lifetime::packets, "(packets)");
    expect("expire");
    expect("add:");
    expiries(lifetimes, &Lifetime::seconds_from_add);
    expect("expire");
    expect("use:");
    expiries(lifetimes, &Lifetime::seconds_from_use);
    return;
  }
  expect("current:");
  lifetimes.bytes = number("a number of bytes", 0, kUnlimited);
  lifetimes.packets = number("a number of packets", 0, kUnlimited);
  expect("add");
  lifetimes.added = time();
  expect("use");
  lifetimes.first_used = time();
}

bool XfrmWords::mark_is_ours() {
  const XfrmWord word = take("VALUE/MASK");
  const auto slash = word.text.find('/');
  std::string_view value = word.text.substr(0, slash);
  if (value.starts_with('-')) value.remove_prefix(1);  // before 4.19 in decimal, with a sign
  const auto mark = parse_integer(value);
  const bool mask = slash != std::string_view::npos && parse_integer(word.text.substr(slash + 1));
  if (good_ && (!mark || !mask)) error(word, "not a mark", "VALUE/MASK");
  return !mark || *mark == 0;
}

void XfrmWords::offload() {
  expect("offload");
  expect("parameters:");
  expect("dev");
  static_cast<void>(take("a device"));
  expect("dir");
  static_cast<void>(take("in or out"));
  if (accept("mode")) static_cast<void>(take("crypto or packet"));
}

void XfrmWords::error(const XfrmWord& at, std::string_view message, std::string_view expected) {
  error_found(at, message, at.text.empty() ? "" : quoted_unless_key(at.text), expected);
}

void XfrmWords::error_found(const XfrmWord& at, std::string_view message, std::string found,
                            std::string_view expected) {
  good_ = false;
  at_ = words_.size();
  errors_.add([&] {
    return Error{{file_, at.line, at.column}, std::string(message), std::move(found), std::string(expected)};
  });
}

void XfrmWords::unsupported(const XfrmWord& at, std::string_view message, std::string_view expected) {
  unsupported_.add([&] {
    return Error{{file_, at.line, at.column},
                 std::string(message),
                 at.text.empty() ? "" : quoted_unless_key(at.text),
                 std::string(expected)};
  });
}

}  // namespace penstock::ipsec
