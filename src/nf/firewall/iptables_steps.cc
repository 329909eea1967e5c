// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/iptables_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/ascii.h"
#include "base/nanoseconds.h"
#include "base/text_file.h"
#include "base/units.h"
#include "classify/connection.h"
#include "classify/interval_set.h"
#include "conntrack/connection.h"
#include "nf/firewall/rule_text.h"
#include "nf/firewall/steps/recent_list.h"
#include "packet/ip.h"
#include "packet/mac_address.h"

namespace penstock::firewall {

namespace {

using classify::IntervalSet;
using classify::number;
using classify::Operand;
using classify::Value;

constexpr std::uint32_t kAllBits = 0xffffffff;

struct OptionName {
  std::string_view name;
  unsigned values = 1;
  bool negatable = false;
};

struct Given {
  const IptablesWord* option = nullptr;
  const IptablesWord* value = nullptr;  // the first
  bool negated = false;
};

/// VALUE or VALUE/MASK
struct Masked {
  std::uint32_t value = 0, mask = kAllBits;
};
std::optional<Masked> parse_masked(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto value = parse_integer(text.substr(0, slash));
  const auto mask =
      slash == std::string_view::npos ? std::optional<std::uint64_t>(kAllBits) : parse_integer(text.substr(slash + 1));
  if (!value || !mask || *value > kAllBits || *mask > kAllBits) return std::nullopt;
  return Masked{static_cast<std::uint32_t>(*value), static_cast<std::uint32_t>(*mask)};
}

/// "5/sec", "3/minute"
std::optional<classify::Rate> parse_rate(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto amount = parse_integer(text.substr(0, slash));
  const std::string_view unit = slash == std::string_view::npos ? "second" : text.substr(slash + 1);
  constexpr std::array<std::pair<std::string_view, std::uint64_t>, 4> kUnits{
      {{"second", 1}, {"minute", 60}, {"hour", 3600}, {"day", 86400}}};
  const auto known =
      std::ranges::find_if(kUnits, [&](const auto& one) { return !unit.empty() && one.first.starts_with(unit); });
  if (!amount || *amount == 0 || *amount > 1'000'000 || known == kUnits.end()) return std::nullopt;
  classify::Rate rate;
  rate.amount = *amount;
  rate.per_ns = known->second * kNsPerSecond;
  return rate;
}

/// "A" or "A:B"; a missing end is 0 or `last`.
std::optional<classify::Interval> parse_range(std::string_view text, std::uint64_t last) {
  const std::size_t colon = text.find(':');
  const std::string_view low = text.substr(0, colon);
  const std::string_view high = colon == std::string_view::npos ? low : text.substr(colon + 1);
  const auto first = low.empty() ? std::optional<std::uint64_t>(0) : parse_integer(low);
  const auto second = high.empty() ? std::optional<std::uint64_t>(last) : parse_integer(high);
  if (!first || !second || *first > *second || *second > last) return std::nullopt;
  return classify::Interval{number(*first), number(*second)};
}

/// Of the object with that name; their number if there is none.
template <typename Object>
std::uint32_t index_of(const std::vector<Object>& objects, const std::string& name) {
  return static_cast<std::uint32_t>(std::ranges::find(objects, name, &Object::name) - objects.begin());
}

/// Reads the options of one extension.
class StepReader {
 public:
  StepReader(std::string_view name, IptablesWords words, const IptablesStepContext& context)
      : name_(name), word_(words.words[words.at - 1]), words_(words), context_(context) {}

  IptablesSteps match() {
    if (name_ == "limit") return limit();
    if (name_ == "hashlimit") return hashlimit();
    if (name_ == "connlimit") return connlimit();
    if (name_ == "recent") return recent();
    if (name_ == "mark" || name_ == "connmark") return mark();
    if (name_ == "statistic") return statistic();
    if (name_ == "addrtype") return addrtype();
    if (name_ == "rpfilter") return reverse_path();
    if (name_ == "length") return in_range(Value::length, "--length", 0xffff);
    if (name_ == "tcpmss") return in_range(Value::segment_size, "--mss", 0xffff);
    if (name_ == "ttl") return compared("--ttl-");
    if (name_ == "hl") return compared("--hl-");
    if (name_ == "dscp") return dscp();
    if (name_ == "mac") return mac();
    if (name_ == "pkttype") return pkttype();
    if (name_ == "set") return match_set();
    if (name_ == "rt") return routing_header();
    if (name_ == "nfacct") return accounting();
    if (name_ == "conntrack") return connection();
    if (name_ == "helper") return of_helper();
    if (name_ == "string") return text();
    if (name_ == "time") return time();
    if (name_ == "frag") return fragment();
    if (name_ == "ipv6header") return extension_headers();
    return quota();
  }

  IptablesSteps target() {
    if (name_ == "MARK") return set_mark();
    if (name_ == "CONNMARK") return set_connection_mark();
    if (name_ == "TCPMSS") return clamp();
    if (name_ == "SET") return change_set();
    if (name_ == "CT") return give_helper();
    if (name_ == "DSCP" || name_ == "TOS") return set_traffic_class();
    if (name_ == "TTL") return set_hop_limit("--ttl-");
    if (name_ == "HL") return set_hop_limit("--hl-");
    if (name_ == "CLASSIFY" || name_ == "CHECKSUM") return without_effect();
    if (name_ == "NOTRACK") return finish(classify::LeaveUntracked{}, true);
    return log();
  }

 private:
  /// Takes the words of these options, up to the first that is none of them.
  bool take(std::initializer_list<OptionName> options) {
    for (;;) {
      std::size_t at = words_.at;
      const bool negated = at < words_.words.size() && words_.words[at].text == "!" && !words_.words[at].quoted;
      at += negated ? 1 : 0;
      if (at >= words_.words.size() || words_.words[at].quoted) return true;
      const IptablesWord& word = words_.words[at];
      const auto known = std::ranges::find(options, word.text, &OptionName::name);
      if (known == options.end()) return true;
      if (negated && !known->negatable) return mistake(word, "option cannot be negated", "the option without !");
      if (at + known->values >= words_.words.size()) return mistake(word, "option without a value", "");
      Given given{&word, known->values == 0 ? nullptr : &words_.words[at + 1], negated};
      if (!given_.emplace(known->name, given).second) return mistake(word, "option given twice", "once in a rule");
      words_.at = at + 1 + known->values;
    }
  }

  [[nodiscard]] bool has(std::string_view option) const { return given_.contains(option); }
  [[nodiscard]] const Given& given(std::string_view option) const { return given_.find(option)->second; }

  bool mistake(const IptablesWord& word, std::string message, std::string expected) {
    if (read_.mistaken != nullptr) return false;
    read_.mistaken = &word;
    read_.message = std::move(message);
    read_.expected = std::move(expected);
    return false;
  }
  IptablesSteps refuse(const IptablesWord& word, std::string message, std::string expected) {
    mistake(word, std::move(message), std::move(expected));
    return std::move(read_);
  }
  IptablesSteps unsupported(std::string reason) {
    read_.unsupported = std::move(reason);
    return std::move(read_);
  }
  IptablesSteps finish(classify::Step step, bool ordered) {
    read_.steps.push_back(std::move(step));
    read_.ordered = ordered;
    return std::move(read_);
  }

  /// The number of an option, or `otherwise` if it is not given; a mistake if it is larger than `most`.
  std::optional<std::uint64_t> number_of_option(std::string_view option, std::uint64_t otherwise, std::uint64_t most) {
    if (!has(option)) return otherwise;
    const auto value = parse_integer(given(option).value->text);
    if (value && *value <= most) return value;
    mistake(*given(option).value, fmt::format("wrong value of {}", option), fmt::format("a number up to {}", most));
    return std::nullopt;
  }

  [[nodiscard]] std::string name_of_object() const {
    const classify::StepObjects& objects = context_.rules.objects;
    const std::size_t nth = objects.rates.size() + objects.quotas.size() + objects.turns.size() + objects.sets.size();
    // Two equal rules are two limits.
    std::size_t same = 0;
    const std::string name = fmt::format("{} {}", context_.family == NetworkLayer::ipv4 ? "ip" : "ip6", context_.text);
    const auto count = [&](const auto& all) {
      same += static_cast<std::size_t>(
          std::ranges::count_if(all, [&](const auto& one) { return one.name.starts_with(name); }));
    };
    if (nth < 4096) {
      count(objects.rates);
      count(objects.quotas);
      count(objects.turns);
      count(objects.sets);
    }
    return fmt::format("{} #{}", name, same);
  }

  IptablesSteps limit() {
    if (!take({{"--limit"}, {"--limit-burst"}})) return std::move(read_);
    classify::Rate rate;
    rate.amount = 3;
    rate.per_ns = 3600 * kNsPerSecond;
    if (has("--limit")) {
      const auto read = parse_rate(given("--limit").value->text);
      if (!read) return refuse(*given("--limit").value, "wrong limit", "NUMBER/second, minute, hour or day");
      rate = *read;
    }
    const auto burst = number_of_option("--limit-burst", 5, 1'000'000);
    if (!burst) return std::move(read_);
    rate.burst = std::max<std::uint64_t>(*burst, 1);
    auto& rates = context_.rules.objects.rates;
    rates.push_back({name_of_object(), rate});
    return finish(classify::UseRate{static_cast<std::uint32_t>(rates.size() - 1)}, true);
  }

  IptablesSteps routing_header() {
    if (!take({{"--rt-type", 1, true},
               {"--rt-segsleft", 1, true},
               {"--rt-len", 1, true},
               {"--rt-0-res", 0},
               {"--rt-0-addrs"},
               {"--rt-0-not-strict", 0}}))
      return std::move(read_);
    if (given_.size() != 1 || !has("--rt-type")) return unsupported("rt is supported with --rt-type only");
    const auto type = number_of_option("--rt-type", 0, 255);
    if (!type) return std::move(read_);
    IntervalSet values{{number(*type), number(*type)}};
    if (given("--rt-type").negated) values = classify::complement(values, {number(0), number(255)});
    return finish(classify::Test{{Value::routing_type}, std::move(values)}, false);
  }

  /// It counts, and holds for every packet.
  IptablesSteps accounting() {
    take({{"--nfacct-name"}});
    return std::move(read_);
  }

  IptablesSteps quota() {
    if (!take({{"--quota", 1, true}})) return std::move(read_);
    if (!has("--quota")) return refuse(word_, "quota without a number", "--quota BYTES");
    const auto bytes = number_of_option("--quota", 0, std::uint64_t{1} << 62);
    if (!bytes) return std::move(read_);
    auto& quotas = context_.rules.objects.quotas;
    quotas.push_back({name_of_object(), {*bytes, 0, given("--quota").negated}});
    return finish(classify::UseQuota{static_cast<std::uint32_t>(quotas.size() - 1)}, true);
  }

  [[nodiscard]] classify::Number address_mask(std::uint64_t length) const {
    const auto bits = static_cast<unsigned>(length);
    return context_.family == NetworkLayer::ipv4 ? number(ipv4_mask(bits)) : ipv6_mask(bits);
  }
  [[nodiscard]] std::uint64_t address_bits() const { return context_.family == NetworkLayer::ipv4 ? 32 : 128; }

  IptablesSteps hashlimit() {
    if (!take({{"--hashlimit-upto"},
               {"--hashlimit"},
               {"--hashlimit-above"},
               {"--hashlimit-burst"},
               {"--hashlimit-mode"},
               {"--hashlimit-name"},
               {"--hashlimit-srcmask"},
               {"--hashlimit-dstmask"},
               {"--hashlimit-htable-size"},
               {"--hashlimit-htable-max"},
               {"--hashlimit-htable-expire"},
               {"--hashlimit-htable-gcinterval"},
               {"--hashlimit-rate-match", 0},
               {"--hashlimit-rate-interval"}}))
      return std::move(read_);
    if (has("--hashlimit-rate-match")) return unsupported("--hashlimit-rate-match is not supported");
    const bool above = has("--hashlimit-above");
    if (above && (has("--hashlimit-upto") || has("--hashlimit")))
      return refuse(word_, "hashlimit with two rates", "--hashlimit-upto or --hashlimit-above");
    const std::string_view which = above                ? "--hashlimit-above"
                                   : has("--hashlimit") ? "--hashlimit"
                                                        : "--hashlimit-upto";
    if (!has(which) || !has("--hashlimit-name"))
      return refuse(word_, "hashlimit without a rate or a name",
                    "--hashlimit-upto or --hashlimit-above, --hashlimit-name");
    const std::string& text = given(which).value->text;
    const auto rate = parse_rate(text);
    if (!rate && text.find("b/s") != std::string::npos) return unsupported("a hashlimit of bytes is not supported");
    if (!rate) return refuse(*given(which).value, "wrong limit", "NUMBER/second, minute, hour or day");
    const auto burst = number_of_option("--hashlimit-burst", 5, 1'000'000);
    // As iptables: entries live for the unit of the rate, which is not printed then.
    const auto expire_ms = number_of_option("--hashlimit-htable-expire", rate->per_ns / 1'000'000, kAllBits);
    const auto most = number_of_option("--hashlimit-htable-max", 262'144, 1U << 22);
    const auto source_bits = number_of_option("--hashlimit-srcmask", address_bits(), address_bits());
    const auto destination_bits = number_of_option("--hashlimit-dstmask", address_bits(), address_bits());
    if (!burst || !expire_ms || !most || !source_bits || !destination_bits) return std::move(read_);
    classify::Update update{};
    update.way = classify::Update::Way::update;
    update.timeout_ns = std::max<std::uint64_t>(*expire_ms, 1) * 1'000'000;
    update.drops_if_full = true;
    classify::Rate limit = *rate;
    limit.burst = std::max<std::uint64_t>(*burst, 1);
    limit.over = above;
    update.of_element = limit;
    if (has("--hashlimit-mode")) {
      for (const std::string_view mode : split(given("--hashlimit-mode").value->text, ',')) {
        if (mode == "srcip")
          update.key.push_back({Value::source, address_mask(*source_bits)});
        else if (mode == "dstip")
          update.key.push_back({Value::destination, address_mask(*destination_bits)});
        else if (mode == "srcport" || mode == "dstport")
          update.key.push_back({.value = mode == "srcport" ? Value::source_port : Value::destination_port,
                                .mask = {~std::uint64_t{0}, ~std::uint64_t{0}},
                                .modulus = 0,
                                .or_zero = true,
                                .counter = 0});
        else
          return refuse(*given("--hashlimit-mode").value, "unknown mode", "srcip, dstip, srcport, dstport");
      }
      if (update.key.size() > classify::kMostElementValues)
        return refuse(*given("--hashlimit-mode").value, "too many modes", "each once");
    }
    update.set = set_named(fmt::format("hashlimit {} {}", context_.family == NetworkLayer::ipv4 ? "ip" : "ip6",
                                       given("--hashlimit-name").value->text),
                           update.key.size(), *most);
    return finish(std::move(update), true);
  }

  /// The index of the set of that name.
  std::uint32_t set_named(const std::string& name, std::size_t values, std::uint64_t size) {
    auto& sets = context_.rules.objects.sets;
    const std::uint32_t index = index_of(sets, name);
    if (index == sets.size())
      sets.push_back({name, static_cast<std::uint32_t>(values), static_cast<std::uint32_t>(size)});
    return index;
  }

  IptablesSteps connlimit() {
    if (!take({{"--connlimit-above"},
               {"--connlimit-upto"},
               {"--connlimit-mask"},
               {"--connlimit-saddr", 0},
               {"--connlimit-daddr", 0}}))
      return std::move(read_);
    const bool above = has("--connlimit-above");
    if (above == has("--connlimit-upto"))
      return refuse(word_, "connlimit needs one number", "--connlimit-above or --connlimit-upto");
    const auto most = number_of_option(above ? "--connlimit-above" : "--connlimit-upto", 0, kAllBits);
    const auto bits = number_of_option("--connlimit-mask", address_bits(), address_bits());
    if (!most || !bits) return std::move(read_);
    classify::Update update{};
    update.key = {{has("--connlimit-daddr") ? Value::destination : Value::source, address_mask(*bits)}};
    update.of_element = classify::ConnectionCount{static_cast<std::uint32_t>(*most), above};
    update.drops_if_full = true;
    constexpr std::uint64_t kMostHosts = 262'144;
    update.set = set_named(name_of_object(), 1, kMostHosts);
    return finish(std::move(update), true);
  }

  IptablesSteps recent() {
    if (!take({{"--set", 0, true},
               {"--rcheck", 0, true},
               {"--update", 0, true},
               {"--remove", 0, true},
               {"--seconds"},
               {"--hitcount"},
               {"--rttl", 0},
               {"--reap", 0},
               {"--name"},
               {"--mask"},
               {"--rsource", 0},
               {"--rdest", 0}}))
      return std::move(read_);
    using Way = classify::Recent::Way;
    constexpr std::array<std::pair<std::string_view, Way>, 4> kWays{
        {{"--set", Way::set}, {"--rcheck", Way::check}, {"--update", Way::update}, {"--remove", Way::remove}}};
    classify::Recent match{};
    const auto count = std::ranges::count_if(kWays, [&](const auto& way) { return has(way.first); });
    if (count != 1) return refuse(word_, "recent needs one of its actions", "--set, --rcheck, --update or --remove");
    for (const auto& [option, way] : kWays) {
      if (!has(option)) continue;
      match.way = way;
      match.negated = given(option).negated;
    }
    const auto seconds = number_of_option("--seconds", 0, kAllBits);
    const auto hits = number_of_option("--hitcount", 0, RecentList::kMostHits);
    if (!seconds || !hits) return std::move(read_);
    if (has("--seconds") && *seconds == 0)
      return refuse(*given("--seconds").value, "wrong value of --seconds", "at least 1");
    const bool counts = has("--rcheck") || has("--update");
    if (!counts && (has("--seconds") || has("--hitcount") || has("--reap")))
      return refuse(word_, "recent with times, but without --rcheck or --update", "--rcheck or --update");
    match.within_ns = *seconds * kNsPerSecond;
    match.hits = static_cast<std::uint32_t>(*hits);
    match.same_hop_limit = has("--rttl");
    match.address = {has("--rdest") ? Value::destination : Value::source};
    if (has("--mask")) {
      const std::string& text = given("--mask").value->text;
      const auto mask4 = parse_ipv4(text);
      const auto mask6 = parse_ipv6(text);
      if (context_.family == NetworkLayer::ipv4 ? !mask4.has_value() : !mask6.has_value())
        return refuse(*given("--mask").value, "wrong mask", "an address whose bits count");
      match.address.mask = context_.family == NetworkLayer::ipv4 ? number(mask4->bits) : *mask6;
    }
    const std::string name = has("--name") ? given("--name").value->text : "DEFAULT";
    auto& lists = context_.rules.objects.recents;
    match.list = index_of(lists, name);
    if (match.list == lists.size()) lists.push_back({name});
    return finish(match, true);
  }

  IptablesSteps test(Value value, std::uint64_t mask, IntervalSet values, std::uint64_t last, bool negated) {
    if (negated) values = classify::complement(values, {number(0), number(last)});
    return finish(classify::Test{{value, number(mask)}, std::move(values)}, false);
  }

  IptablesSteps mark() {
    if (!take({{"--mark", 1, true}})) return std::move(read_);
    if (!has("--mark")) return refuse(word_, "mark without a value", "--mark VALUE[/MASK]");
    const auto mark = parse_masked(given("--mark").value->text);
    if (!mark) return refuse(*given("--mark").value, "wrong mark", "VALUE or VALUE/MASK, 32 bits each");
    // As in the kernel's comparison: bits of the value outside of the mask never match.
    IntervalSet values;
    if ((mark->value & ~mark->mask) == 0) values = {{number(mark->value), number(mark->value)}};
    return test(name_ == "mark" ? Value::mark : Value::connection_mark, mark->mask, std::move(values), kAllBits,
                given("--mark").negated);
  }

  IptablesSteps statistic() {
    if (!take({{"--mode"}, {"--probability", 1, true}, {"--every", 1, true}, {"--packet"}})) return std::move(read_);
    const std::string mode = has("--mode") ? given("--mode").value->text : "";
    if (mode == "random" && has("--probability")) {
      const Given& option = given("--probability");
      const auto probability = parse_number(option.value->text);
      if (!probability || *probability < 0 || *probability > 1)
        return refuse(*option.value, "wrong probability", "a number from 0 to 1");
      // As xt_statistic: 31 random bits.
      constexpr std::uint32_t kOne = 0x80000000;
      const auto below = static_cast<std::uint64_t>(std::llround(*probability * kOne));
      Operand operand{Value::random};
      operand.modulus = kOne;
      IntervalSet values;
      if (below > 0) values = {{number(0), number(below - 1)}};
      if (option.negated) values = classify::complement(values, {number(0), number(kOne - 1)});
      return finish(classify::Test{operand, std::move(values)}, false);
    }
    if (mode != "nth" || !has("--every"))
      return refuse(word_, "statistic without a mode", "--mode random --probability P, or --mode nth --every N");
    const auto every = number_of_option("--every", 0, kAllBits);
    const auto packet = number_of_option("--packet", 0, kAllBits);
    if (!every || !packet) return std::move(read_);
    if (*every == 0 || *packet >= *every)
      return refuse(*given("--every").value, "wrong value of --every", "more than --packet");
    Operand operand{Value::turn};
    operand.modulus = static_cast<std::uint32_t>(*every);
    operand.counter = static_cast<std::uint32_t>(context_.rules.objects.turns.size());
    context_.rules.objects.turns.push_back({name_of_object()});
    IntervalSet values{{number(*packet), number(*packet)}};
    if (given("--every").negated) values = classify::complement(values, {number(0), number(*every - 1)});
    return finish(classify::Test{operand, std::move(values)}, true);
  }

  IptablesSteps addrtype() {
    if (!take({{"--src-type", 1, true}, {"--dst-type", 1, true}, {"--limit-iface-in", 0}, {"--limit-iface-out", 0}}))
      return std::move(read_);
    if (has("--limit-iface-in") || has("--limit-iface-out"))
      return unsupported("addrtype of one interface is not supported");
    if (!has("--src-type") && !has("--dst-type"))
      return refuse(word_, "addrtype without a type", "--src-type or --dst-type");
    for (const std::string_view option : {std::string_view("--src-type"), std::string_view("--dst-type")}) {
      if (!has(option)) continue;
      auto of_type = read_address_types(option);
      if (!of_type) return std::move(read_);
      read_.steps.emplace_back(std::move(*of_type));
    }
    return std::move(read_);
  }

  IptablesSteps reverse_path() {
    // Marks choose among routing tables, and the router has one.
    if (!take({{"--loose", 0}, {"--validmark", 0}, {"--accept-local", 0}, {"--invert", 0}})) return std::move(read_);
    if (const std::string_view lacks = context_.host.lacks(""); !lacks.empty())
      return unsupported(fmt::format("rpfilter {}", lacks));
    return finish(classify::ReversePath{has("--loose"), has("--accept-local"), has("--invert")}, false);
  }

  std::optional<classify::AnyOf> read_address_types(std::string_view option) {
    const Given& types = given(option);
    const bool ipv4 = context_.family == NetworkLayer::ipv4;
    std::vector<classify::Interval> addresses;
    for (const std::string_view type : split(types.value->text, ',')) {
      std::string name(type);
      std::ranges::transform(name, name.begin(), ascii_lower);
      const auto of_type = context_.host.of_type(context_.family, name);
      const std::string_view lacks = context_.host.lacks(name);
      // The kernel matches IPv6 multicast addresses that are also of another type of the list.
      const bool is_both = !ipv4 && name == "multicast" && types.value->text != type;
      if (!of_type || is_both || (!ipv4 && name == "broadcast")) {
        read_.unsupported = fmt::format("addrtype {} is not supported{}", type,
                                        is_both ? " together with other types"
                                        : ipv4  ? ""
                                                : " for IPv6");
      } else if (!lacks.empty()) {
        read_.unsupported = fmt::format("addrtype {} {}", type, lacks);
      }
      if (!read_.unsupported.empty()) return std::nullopt;
      addresses.insert(addresses.end(), of_type->begin(), of_type->end());
    }
    using classify::Subject;
    const bool source = option == "--src-type";
    IntervalSet set = classify::united(std::move(addresses));
    if (types.negated)
      set = classify::complement(
          set, {number(0), ipv4 ? number(0xffffffff) : classify::Number{~std::uint64_t{0}, ~std::uint64_t{0}}});
    classify::AnyOf any;
    for (const classify::Interval& range : set) {
      const classify::Condition condition =
          ipv4 ? classify::ipv4_condition(source ? Subject::source4 : Subject::destination4,
                                          {static_cast<std::uint32_t>(range.low.low)},
                                          {static_cast<std::uint32_t>(range.high.low)}, false)
               : classify::ipv6_condition(context_.rules, source ? Subject::source6 : Subject::destination6, range.low,
                                          range.high, false);
      any.alternatives.push_back({{condition}, context_.family});
    }
    return any;
  }

  IptablesSteps in_range(Value value, std::string_view option, std::uint64_t last) {
    if (!take({{option, 1, true}})) return std::move(read_);
    if (!has(option)) return refuse(word_, "match without a value", std::string(option) + " LOW[:HIGH]");
    const auto range = parse_range(given(option).value->text, last);
    if (!range) return refuse(*given(option).value, "wrong range", fmt::format("LOW[:HIGH] up to {}", last));
    // As in the kernel: negated, also packets without the option match.
    return finish(classify::Test{{value}, {*range}, given(option).negated}, false);
  }

  /// --ttl-eq, --ttl-lt, --ttl-gt
  IptablesSteps compared(const std::string& prefix) {
    const std::string equal = prefix + "eq", less = prefix + "lt", greater = prefix + "gt";
    if (!take({{equal, 1, true}, {less}, {greater}})) return std::move(read_);
    if (given_.size() != 1)
      return refuse(word_, "match needs one comparison", fmt::format("{}, {} or {}", equal, less, greater));
    const std::string_view option = given_.begin()->first;
    const auto value = number_of_option(option, 0, 255);
    if (!value) return std::move(read_);
    IntervalSet values;
    if (option == equal) values = {{number(*value), number(*value)}};
    if (option == less && *value > 0) values = {{number(0), number(*value - 1)}};
    if (option == greater && *value < 255) values = {{number(*value + 1), number(255)}};
    return test(Value::hop_limit, 0xff, std::move(values), 255, given(option).negated);
  }

  IptablesSteps dscp() {
    if (!take({{"--dscp", 1, true}})) return std::move(read_);
    if (!has("--dscp")) return unsupported("dscp by a class is not supported; iptables-save prints --dscp");
    const auto value = number_of_option("--dscp", 0, 63);
    if (!value) return std::move(read_);
    return test(Value::traffic_class, 0xfc, {{number(*value << 2), number(*value << 2)}}, 0xff,
                given("--dscp").negated);
  }

  IptablesSteps mac() {
    if (!take({{"--mac-source", 1, true}})) return std::move(read_);
    if (!has("--mac-source")) return refuse(word_, "mac without an address", "--mac-source XX:XX:XX:XX:XX:XX");
    const IptablesWord& word = *given("--mac-source").value;
    const auto mac = parse_mac(word.text);
    if (!mac) return refuse(word, "wrong MAC address", "XX:XX:XX:XX:XX:XX");
    const classify::Number address = number(to_number(*mac));
    return test(Value::ether_source, ~std::uint64_t{0}, {{address, address}}, 0xffff'ffff'ffffU,
                given("--mac-source").negated);
  }

  IptablesSteps pkttype() {
    if (!take({{"--pkt-type", 1, true}})) return std::move(read_);
    if (!has("--pkt-type")) return refuse(word_, "pkttype without a type", "--pkt-type");
    const std::string& kind = given("--pkt-type").value->text;
    using classify::PacketType;
    std::uint8_t type = PacketType::kHost;
    if (kind == "broadcast") {
      type = PacketType::kBroadcast;
    } else if (kind == "multicast") {
      type = PacketType::kMulticast;
    } else if (kind != "unicast" && kind != "host") {
      return unsupported(fmt::format("pkttype {} is not supported", kind));
    }
    return test(Value::packet_type, 0xff, {{number(type), number(type)}}, 0xff, given("--pkt-type").negated);
  }

  /// The set of an option, with the operands of its directions ("src,dst"). Null if it is unknown or unsupported.
  const Ipset* find_set(const IptablesWord& name, std::string_view directions, std::vector<Operand>& key, bool& never) {
    if (context_.ipsets == nullptr) {
      read_.unsupported = "sets of ipset need the output of `ipset save`: the parameter `ipsets`";
      return nullptr;
    }
    const auto found = context_.ipsets->find(name.text);
    if (found == context_.ipsets->end()) {
      mistake(name, "unknown set", "a set that the file of `ipsets` creates");
      return nullptr;
    }
    const Ipset* set = &found->second;
    if (!set->unsupported.empty()) {
      read_.unsupported = fmt::format("set {}: {}", name.text, set->unsupported);
      return nullptr;
    }
    const std::vector<std::string_view> sides = split(directions, ',');
    const std::vector<Ipset::Part>& parts = set->type == "list:set" ? parts_of_members(*set) : set->parts;
    // As the kernel: fewer directions than the set has parts, or another family, never match.
    never = sides.size() < parts.size() || (set->family != NetworkLayer::none && set->family != context_.family);
    for (std::size_t i = 0; i < sides.size(); ++i) {
      const bool source = sides[i] == "src";
      if (!source && sides[i] != "dst") {
        mistake(name, "wrong directions of a set", "src and dst, separated by commas");
        return nullptr;
      }
      if (i >= parts.size()) continue;
      if (parts[i] == Ipset::Part::address) {
        key.push_back({source ? Value::source : Value::destination});
      } else if (parts[i] == Ipset::Part::mac) {
        key.push_back({source ? Value::ether_source : Value::ether_destination});
      } else {
        if (!set->any_protocol) key.push_back({Value::protocol});
        key.push_back({source ? Value::source_port : Value::destination_port});
      }
    }
    return set;
  }

  /// Of a list:set, the parts of its first member.
  [[nodiscard]] const std::vector<Ipset::Part>& parts_of_members(const Ipset& list) const {
    static const std::vector<Ipset::Part> kNone;
    if (list.members.empty()) return kNone;
    const auto first = context_.ipsets->find(list.members.front());
    return first == context_.ipsets->end() ? kNone : first->second.parts;
  }

  IptablesSteps match_set() {
    if (!take({{"--match-set", 2, true},
               {"--return-nomatch", 0},
               {"--update-counters", 0, true},
               {"--update-subcounters", 0, true},
               {"--packets-eq", 1, true},
               {"--packets-lt"},
               {"--packets-gt"},
               {"--bytes-eq", 1, true},
               {"--bytes-lt"},
               {"--bytes-gt"}}))
      return std::move(read_);
    if (!has("--match-set")) return refuse(word_, "set without a name", "--match-set NAME src,dst");
    for (const auto& [option, unused] : given_) {
      if (option != "--match-set" && !option.starts_with("--update"))
        return unsupported(fmt::format("{} is not supported", option));
    }
    const Given& match = given("--match-set");
    std::vector<Operand> key;
    bool never = false;
    const Ipset* const set = find_set(*match.value, (match.value + 1)->text, key, never);
    if (set == nullptr) return std::move(read_);
    if (never) return finish(classify::Test{{Value::mark}, {}, match.negated}, false);
    if (set->type == "list:set") return match_list(*set, key, match.negated);
    const bool changes = set->has_timeouts || context_.changed_ipsets.contains(match.value->text);
    if (set->any_protocol) {  // of TCP and UDP only, as in the kernel
      if (changes || match.negated)
        return unsupported("a set of type bitmap:port that changes or is negated is not supported");
      read_.steps.emplace_back(classify::Test{{Value::protocol},
                                              {{number(ip_protocol::kTcp), number(ip_protocol::kTcp)},
                                               {number(ip_protocol::kUdp), number(ip_protocol::kUdp)}}});
    }
    if (!changes && set->parts.size() == 1 && !take_values(set->elements.size())) return std::move(read_);
    if (!changes && set->parts.size() == 1)
      return finish(classify::Test{key.back(), values_of(*set), match.negated}, false);
    if (set->has_ranges) return match_ranges(*set, changes, match);
    classify::LookUp look_up{};
    look_up.set = changing_set(match.value->text, *set);
    look_up.key = std::move(key);
    look_up.negated = look_up.also_without = match.negated;
    return finish(std::move(look_up), false);
  }

  /// Before the elements of a set are copied. False: there are too many in all, which is refused.
  bool take_values(std::size_t count) {
    if (count > context_.set_values_left) {
      context_.set_values_left = 0;
      return mistake(word_, "too many values of sets in all rules that use them",
                     "fewer (most_rules raises the limit)");
    }
    context_.set_values_left -= count;
    return true;
  }

  static IntervalSet values_of(const Ipset& set) {
    std::vector<classify::Interval> values;
    for (const Ipset::Element& element : set.elements) values.push_back(element.values.front());
    return classify::united(std::move(values));
  }

  IptablesSteps match_list(const Ipset& list, const std::vector<Operand>& key, bool negated) {
    std::vector<classify::Interval> values;
    for (const std::string& name : list.members) {
      const auto member = context_.ipsets->find(name);
      if (member == context_.ipsets->end()) return unsupported(fmt::format("a list with the unknown set {}", name));
      const Ipset& set = member->second;
      if (!set.unsupported.empty()) return unsupported(fmt::format("set {}: {}", name, set.unsupported));
      if (set.parts.size() != 1 || set.has_timeouts || context_.changed_ipsets.contains(name) ||
          set.parts != parts_of_members(list))
        return unsupported(fmt::format("a list with a set of type {} is not supported", set.type));
      if (!take_values(set.elements.size() + 1)) return std::move(read_);
      if (set.family != NetworkLayer::none && set.family != context_.family) continue;
      const IntervalSet more = values_of(set);
      values.insert(values.end(), more.begin(), more.end());
    }
    if (key.empty()) return finish(classify::Test{{Value::mark}, {}, negated}, false);
    return finish(classify::Test{key.back(), classify::united(std::move(values)), negated}, false);
  }

  /// Elements with ranges in several parts, one after the other.
  IptablesSteps match_ranges(const Ipset& set, bool changes, const Given& match) {
    constexpr std::size_t kMost = 4096;
    if (changes || match.negated || set.elements.size() > kMost)
      return unsupported(
          fmt::format("a set of type {} with ranges is supported only if it does not change, has at most "
                      "{} elements and is not negated",
                      set.type, format_count(kMost)));
    if (!take_values(set.elements.size() * set.parts.size())) return std::move(read_);
    using classify::Subject;
    const std::vector<std::string_view> sides = split((match.value + 1)->text, ',');
    classify::AnyOf any;
    for (const Ipset::Element& element : set.elements) {
      classify::Alternative& alternative = any.alternatives.emplace_back();
      alternative.family = context_.family;
      for (std::size_t i = 0; i < element.values.size(); ++i) {
        const bool source = sides[i] == "src";
        const classify::Interval& range = element.values[i];
        if (set.parts[i] == Ipset::Part::port) {
          alternative.conditions.push_back(classify::protocol_condition(element.protocol, 0xff, false));
          alternative.conditions.push_back(classify::port_condition(
              context_.rules, source ? Subject::source_port : Subject::destination_port,
              {{static_cast<std::uint16_t>(range.low.low), static_cast<std::uint16_t>(range.high.low)}}, false));
        } else {
          alternative.conditions.push_back(
              address_condition(context_.rules, {context_.family, range.low, range.high}, source, false));
        }
      }
    }
    return finish(std::move(any), false);
  }

  /// The set as one that changes, also if it does not.
  std::uint32_t changing_set(const std::string& name, const Ipset& set) {
    const std::string full = "ipset " + name;
    auto& sets = context_.rules.objects.sets;
    const std::uint32_t index = index_of(sets, full);
    if (index != sets.size()) return index;
    classify::ChangingSet changing;
    changing.name = full;
    changing.size = std::max(set.size, static_cast<std::uint32_t>(set.elements.size()));
    changing.timeout_ns = set.timeout_ns;
    changing.values = 0;
    for (const Ipset::Part part : set.parts) changing.values += part == Ipset::Part::port && !set.any_protocol ? 2 : 1;
    for (const Ipset::Element& element : set.elements) {
      classify::ChangingSet::Element& added = changing.elements.emplace_back();
      added.timeout_ns = element.timeout_ns;
      for (std::size_t i = 0; i < element.values.size(); ++i) {
        if (set.parts[i] == Ipset::Part::port && !set.any_protocol) added.key.push_back(number(element.protocol));
        added.key.push_back(element.values[i].low);
      }
    }
    sets.push_back(std::move(changing));
    return index;
  }

  IptablesSteps change_set() {
    if (!take({{"--add-set", 2}, {"--del-set", 2}, {"--map-set", 2}, {"--timeout"}, {"--exist", 0}}))
      return std::move(read_);
    const bool adds = has("--add-set");
    if (has("--map-set")) return unsupported("--map-set is not supported");
    if (adds == has("--del-set")) return refuse(word_, "SET needs one change", "--add-set or --del-set NAME src,dst");
    const Given& change = given(adds ? "--add-set" : "--del-set");
    std::vector<Operand> key;
    bool never = false;
    const Ipset* const set = find_set(*change.value, (change.value + 1)->text, key, never);
    if (set == nullptr) return std::move(read_);
    // Bitmaps have a range, and elements with ports may be of ICMP.
    if (set->type != "hash:ip" && set->type != "hash:net" && set->type != "hash:mac")
      return unsupported(fmt::format("a change of a set of type {} is not supported", set->type));
    if (set->has_ranges)
      return unsupported(fmt::format("a change of a set of type {} with ranges is not supported", set->type));
    if (never) return std::move(read_);
    const auto seconds = number_of_option("--timeout", 0, kAllBits);
    if (!seconds) return std::move(read_);
    classify::Update update{};
    update.set = changing_set(change.value->text, *set);
    update.key = std::move(key);
    update.way = !adds            ? classify::Update::Way::remove
                 : has("--exist") ? classify::Update::Way::update
                                  : classify::Update::Way::add;
    if (has("--timeout") && set->has_timeouts)
      update.timeout_ns = *seconds == 0 ? classify::Update::kForever : *seconds * kNsPerSecond;
    return finish(std::move(update), true);
  }

  IptablesSteps set_mark() {
    if (!take({{"--set-xmark"}, {"--set-mark"}, {"--and-mark"}, {"--or-mark"}, {"--xor-mark"}}))
      return std::move(read_);
    if (given_.size() != 1) return refuse(word_, "MARK needs one option", "--set-xmark VALUE[/MASK]");
    const auto& [option, value] = *given_.begin();
    const auto mark = parse_masked(value.value->text);
    if (!mark) return refuse(*value.value, "wrong mark", "VALUE or VALUE/MASK, 32 bits each");
    return finish(mark_of(option, *mark, false), true);
  }

  /// As iptables makes one of another.
  static classify::SetMark mark_of(std::string_view option, const Masked& mark, bool of_connection) {
    classify::SetMark set{};
    set.of_connection = of_connection;
    set.flip = mark.value;
    set.keep = ~mark.mask;
    if (option == "--set-mark") set.keep = ~(mark.mask | mark.value);
    if (option == "--and-mark") {
      set.flip = 0;
      set.keep = mark.value;
    }
    if (option == "--or-mark") set.keep = ~mark.value;
    if (option == "--xor-mark") set.keep = kAllBits;
    return set;
  }

  IptablesSteps set_connection_mark() {
    if (!take({{"--set-xmark"},
               {"--set-mark"},
               {"--and-mark"},
               {"--or-mark"},
               {"--xor-mark"},
               {"--save-mark", 0},
               {"--restore-mark", 0},
               {"--nfmask"},
               {"--ctmask"},
               {"--mask"}}))
      return std::move(read_);
    const bool save = has("--save-mark");
    if (save || has("--restore-mark")) {
      for (const std::string_view option :
           {std::string_view("--set-xmark"), std::string_view("--set-mark"), std::string_view("--and-mark"),
            std::string_view("--or-mark"), std::string_view("--xor-mark"), std::string_view("--restore-mark")}) {
        if (has(option) && (save || option != "--restore-mark"))
          return refuse(word_, "CONNMARK needs one option", "--set-xmark, --save-mark or --restore-mark");
      }
      const auto both = number_of_option("--mask", kAllBits, kAllBits);
      if (!both) return std::move(read_);
      const auto packets = number_of_option("--nfmask", *both, kAllBits);
      const auto connections = number_of_option("--ctmask", *both, kAllBits);
      if (!packets || !connections) return std::move(read_);
      using Source = classify::SetMark::Source;
      classify::SetMark set{};
      set.of_connection = save;
      set.source = save ? Source::packet : Source::connection;
      set.mask = static_cast<std::uint32_t>(save ? *packets : *connections);
      set.keep = ~static_cast<std::uint32_t>(save ? *connections : *packets);
      return finish(set, true);
    }
    if (given_.size() != 1)
      return refuse(word_, "CONNMARK needs one option", "--set-xmark, --save-mark or --restore-mark");
    const auto& [option, value] = *given_.begin();
    const auto mark = value.value == nullptr ? std::nullopt : parse_masked(value.value->text);
    if (!mark) return refuse(*value.option, "wrong mark", "VALUE or VALUE/MASK, 32 bits each");
    return finish(mark_of(option, *mark, true), true);
  }

  IptablesSteps clamp() {
    if (!take({{"--set-mss"}, {"--clamp-mss-to-pmtu", 0}})) return std::move(read_);
    if (given_.size() != 1) return refuse(word_, "TCPMSS needs one option", "--set-mss NUMBER or --clamp-mss-to-pmtu");
    const auto most = number_of_option("--set-mss", 0, 0xffff - 40);
    if (!most) return std::move(read_);
    if (has("--set-mss") && *most == 0)
      return refuse(*given("--set-mss").value, "wrong value of --set-mss", "at least 1");
    return finish(classify::ClampSegmentSize{static_cast<std::uint16_t>(*most)}, true);
  }

  IptablesSteps give_helper() {
    if (!take({{"--helper"},
               {"--notrack", 0},
               {"--zone"},
               {"--zone-orig"},
               {"--zone-reply"},
               {"--ctevents"},
               {"--expevents"},
               {"--timeout"}}))
      return std::move(read_);
    if (given_.size() == 1 && has("--notrack")) return finish(classify::LeaveUntracked{}, true);
    for (const std::string_view zone :
         {std::string_view("--zone"), std::string_view("--zone-orig"), std::string_view("--zone-reply")}) {
      if (has(zone)) return unsupported("zones of connections are not supported: they are all in one");
    }
    if (given_.size() != 1 || !has("--helper"))
      return unsupported("target CT is supported with --helper or --notrack only");
    if (given("--helper").value->text == "ftp") return finish(classify::GiveHelper{}, true);
    // Without it, packets that only it would call related are not.
    read_.only_observes = true;
    return unsupported(fmt::format("helper {} is not supported", given("--helper").value->text));
  }

  /// `-m conntrack` with more than a state and a direction. As in the kernel, packets without a connection match all
  /// the rest if the match also names their state.
  IptablesSteps connection() {
    if (!take({{"--ctstate", 1, true},
               {"--ctdir", 1, false},
               {"--ctproto", 1, true},
               {"--ctorigsrc", 1, true},
               {"--ctorigdst", 1, true},
               {"--ctreplsrc", 1, true},
               {"--ctrepldst", 1, true},
               {"--ctorigsrcport", 1, true},
               {"--ctorigdstport", 1, true},
               {"--ctreplsrcport", 1, true},
               {"--ctrepldstport", 1, true},
               {"--ctstatus", 1, true},
               {"--ctexpire", 1, true}}))
      return std::move(read_);
    const bool any_without = has("--ctstate");
    const auto require = [&](Operand operand, IntervalSet values, classify::Number last, bool negated) {
      const classify::Interval domain{number(0), last};
      if (negated) values = classify::complement(values, domain);
      // A packet without a connection has no value.
      if (any_without) values = classify::complement(values, domain);
      read_.steps.emplace_back(classify::Test{operand, std::move(values), any_without});
    };
    if (any_without || has("--ctdir")) {
      const auto holds = read_states();
      if (!holds) return std::move(read_);
      classify::AnyOf any;
      any.alternatives.push_back({{classify::connection_condition(*holds)}, NetworkLayer::none});
      read_.steps.emplace_back(std::move(any));
    }
    constexpr std::array<std::pair<std::string_view, Value>, 4> kAddresses{
        {{"--ctorigsrc", Value::original_source},
         {"--ctorigdst", Value::original_destination},
         {"--ctreplsrc", Value::reply_source},
         {"--ctrepldst", Value::reply_destination}}};
    for (const auto& [option, value] : kAddresses) {
      if (!has(option)) continue;
      const auto address = masked_address(given(option).value->text);
      if (!address) return refuse(*given(option).value, "wrong address", "an address of the family, or ADDRESS/MASK");
      require({value, address->second}, {{address->first, address->first}}, all_addresses(), given(option).negated);
    }
    constexpr std::array<std::pair<std::string_view, Value>, 4> kPorts{
        {{"--ctorigsrcport", Value::original_source_port},
         {"--ctorigdstport", Value::original_destination_port},
         {"--ctreplsrcport", Value::reply_source_port},
         {"--ctrepldstport", Value::reply_destination_port}}};
    for (const auto& [option, value] : kPorts) {
      if (!has(option)) continue;
      const auto range = parse_range(given(option).value->text, 0xffff);
      if (!range) return refuse(*given(option).value, "wrong port", "PORT or LOW:HIGH up to 65535");
      require({value}, {*range}, number(0xffff), given(option).negated);
    }
    if (has("--ctproto")) {
      const auto protocol = parse_protocol(given("--ctproto").value->text);
      if (!protocol) return refuse(*given("--ctproto").value, "unknown protocol", "tcp, udp, … or a number up to 255");
      require({Value::connection_protocol}, {{number(*protocol), number(*protocol)}}, number(0xff),
              given("--ctproto").negated);
    }
    if (has("--ctexpire")) {
      constexpr std::uint64_t kMsPerSecond = 1000;
      const auto range = parse_range(given("--ctexpire").value->text, kAllBits);
      if (!range) return refuse(*given("--ctexpire").value, "wrong time", "SECONDS or LOW:HIGH");
      require({Value::expiration_ms},
              {{number(range->low.low * kMsPerSecond), number(range->high.low * kMsPerSecond + kMsPerSecond - 1)}},
              number(~std::uint64_t{0}), given("--ctexpire").negated);
    }
    if (has("--ctstatus")) {
      std::uint64_t bits = 0;
      constexpr std::array<std::pair<std::string_view, std::uint64_t>, 5> kStatus{
          {{"NONE", 0}, {"EXPECTED", 1}, {"SEEN_REPLY", 2}, {"ASSURED", 4}, {"CONFIRMED", 8}}};
      for (const std::string_view name : split(given("--ctstatus").value->text, ',')) {
        const auto known = std::ranges::find(kStatus, name, &decltype(kStatus)::value_type::first);
        if (known == kStatus.end())
          return refuse(*given("--ctstatus").value, "unknown status",
                        "NONE, EXPECTED, SEEN_REPLY, ASSURED or CONFIRMED, separated by commas");
        bits |= known->second;
      }
      IntervalSet values;
      if (bits != 0) values = {{number(1), number(bits)}};
      require({Value::connection_status, number(bits)}, std::move(values), number(bits), given("--ctstatus").negated);
    }
    return std::move(read_);
  }

  /// The connections that --ctstate and --ctdir name.
  std::optional<std::uint64_t> read_states() {
    std::optional<std::uint64_t> states;
    if (has("--ctstate")) {
      states = parse_connection_states(given("--ctstate").value->text);
      if (!states) {
        mistake(*given("--ctstate").value, "unknown connection state",
                "INVALID, NEW, ESTABLISHED, RELATED, UNTRACKED, SNAT or DNAT, separated by commas");
        return std::nullopt;
      }
      if (given("--ctstate").negated) states = ~*states;
    }
    std::optional<bool> reply;
    if (has("--ctdir")) {
      const std::string& direction = given("--ctdir").value->text;
      if (direction != "ORIGINAL" && direction != "REPLY") {
        mistake(*given("--ctdir").value, "unknown direction", "ORIGINAL or REPLY");
        return std::nullopt;
      }
      reply = direction == "REPLY";
    }
    return connections_of(states, reply);
  }

  [[nodiscard]] classify::Number all_addresses() const {
    return context_.family == NetworkLayer::ipv4 ? number(kAllBits)
                                                 : classify::Number{~std::uint64_t{0}, ~std::uint64_t{0}};
  }

  /// "10.0.0.0/8", "10.0.0.5/255.0.0.255": the address under the mask, and the mask.
  [[nodiscard]] std::optional<std::pair<classify::Number, classify::Number>> masked_address(
      std::string_view text) const {
    return parse_masked_address(text, context_.family);
  }

  /// As xt_helper: connections that another one's helper had expected. That is FTP's, the only one here.
  IptablesSteps of_helper() {
    if (!take({{"--helper", 1, true}})) return std::move(read_);
    if (!has("--helper")) return refuse(word_, "helper without a name", "--helper NAME");
    const Given& helper = given("--helper");
    const std::string& name = helper.value->text;
    constexpr std::uint64_t kExpected = conntrack::Connection::kExpected;
    if (name.starts_with("ftp-")) return unsupported("a helper by its port is not supported");
    if (helper.negated && name != "ftp" && !name.empty())
      return unsupported(fmt::format("helper {} is not supported", name));
    IntervalSet values;
    if (name == "ftp" || name.empty()) values = {{number(kExpected), number(kExpected)}};
    return finish(classify::Test{{Value::connection_status, number(kExpected)}, std::move(values), helper.negated},
                  false);
  }

  IptablesSteps text() {
    if (!take({{"--string", 1, true}, {"--hex-string", 1, true}, {"--algo"}, {"--from"}, {"--to"}, {"--icase", 0}}))
      return std::move(read_);
    if (has("--string") == has("--hex-string") || !has("--algo"))
      return refuse(word_, "string needs a text and an algorithm", "--string or --hex-string, and --algo bm or kmp");
    const std::string& algorithm = given("--algo").value->text;
    if (algorithm != "bm" && algorithm != "kmp")
      return refuse(*given("--algo").value, "unknown algorithm", "bm or kmp");
    const auto from = number_of_option("--from", 0, 0xffff);
    const auto to = number_of_option("--to", 0xffff, 0xffff);
    if (!from || !to) return std::move(read_);
    const Given& pattern = given(has("--string") ? "--string" : "--hex-string");
    auto text = has("--string") ? std::optional(pattern.value->text) : parse_hex_text(pattern.value->text);
    constexpr std::size_t kMost = 128;  // XT_STRING_MAX_PATTERN_SIZE
    if (!text || text->empty() || text->size() > kMost)
      return refuse(*pattern.value, "wrong text", fmt::format("1 to {} bytes; in hexadecimal: |0d 0a|", kMost));
    return finish(classify::FindText{std::move(*text), static_cast<std::uint16_t>(*from),
                                     static_cast<std::uint16_t>(*to), has("--icase"), pattern.negated},
                  false);
  }

  /// "GET|0d 0a|"
  static std::optional<std::string> parse_hex_text(std::string_view text) {
    const auto digit = [](char c) -> int {
      if (c >= '0' && c <= '9') return c - '0';
      const int lower = c | 0x20;
      return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
    };
    std::string bytes;
    bool hex = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '|') {
        hex = !hex;
      } else if (hex && text[i] == ' ') {
        continue;
      } else if (hex) {
        const int high = digit(text[i]), low = i + 1 < text.size() ? digit(text[i + 1]) : -1;
        if (high < 0 || low < 0) return std::nullopt;
        bytes.push_back(static_cast<char>(high << 4 | low));
        ++i;
      } else {
        bytes.push_back(text[i]);
      }
    }
    if (hex) return std::nullopt;
    return bytes;
  }

  IptablesSteps time() {
    if (!take({{"--datestart"},
               {"--datestop"},
               {"--timestart"},
               {"--timestop"},
               {"--weekdays", 1, true},
               {"--monthdays", 1, true},
               {"--contiguous", 0},
               {"--kerneltz", 0},
               {"--utc", 0}}))
      return std::move(read_);
    if (has("--kerneltz")) return unsupported("time of the kernel's time zone is not supported, only UTC");
    classify::AtTime at;
    for (const std::string_view option : {std::string_view("--datestart"), std::string_view("--datestop")}) {
      if (!has(option)) continue;
      const auto date = parse_date(given(option).value->text);
      if (!date) return refuse(*given(option).value, "wrong date", "YYYY-MM-DDThh:mm:ss");
      (option == "--datestart" ? at.from : at.to) = *date;
    }
    for (const std::string_view option : {std::string_view("--timestart"), std::string_view("--timestop")}) {
      if (!has(option)) continue;
      const auto second = parse_time_of_day(given(option).value->text);
      if (!second) return refuse(*given(option).value, "wrong time", "hh:mm or hh:mm:ss");
      (option == "--timestart" ? at.from_second : at.to_second) = static_cast<std::uint32_t>(*second);
    }
    if (has("--weekdays")) {
      constexpr std::array<std::string_view, 7> kDays{"Su", "Mo", "Tu", "We", "Th", "Fr", "Sa"};
      at.weekdays = 0;
      for (const std::string_view day : split(given("--weekdays").value->text, ',')) {
        const auto known = std::ranges::find_if(kDays, [&](std::string_view one) { return day.starts_with(one); });
        const auto numbered = parse_integer(day);
        if (known != kDays.end())
          at.weekdays |= 1U << (known - kDays.begin());
        else if (numbered && *numbered >= 1 && *numbered <= 7)
          at.weekdays |= 1U << (*numbered % 7);
        else
          return refuse(*given("--weekdays").value, "unknown weekday", "Mon, Tue, … or 1 to 7, separated by commas");
      }
      if (given("--weekdays").negated) at.weekdays ^= 0x7f;
    }
    if (has("--monthdays")) {
      at.days = 0;
      for (std::string_view day : split(given("--monthdays").value->text, ',')) {
        for (const std::string_view suffix :
             {std::string_view("st"), std::string_view("nd"), std::string_view("rd"), std::string_view("th")}) {
          if (day.ends_with(suffix)) day.remove_suffix(suffix.size());
        }
        const auto numbered = parse_integer(day);
        if (!numbered || *numbered < 1 || *numbered > 31)
          return refuse(*given("--monthdays").value, "wrong day of a month", "1 to 31, separated by commas");
        at.days |= 1U << *numbered;
      }
      if (given("--monthdays").negated) at.days ^= 0xfffffffe;
    }
    at.night_belongs_to_day_before = has("--contiguous");
    return finish(at, false);
  }

  IptablesSteps of_ipv6_only() { return refuse(word_, "match is for IPv6 rules only", "a match of iptables"); }

  /// Of IPv6's fragment header.
  IptablesSteps fragment() {
    if (!take({{"--fragid", 1, true},
               {"--fraglen", 1, true},
               {"--fragres", 0},
               {"--fragfirst", 0},
               {"--fragmore", 0},
               {"--fraglast", 0}}))
      return std::move(read_);
    if (context_.family == NetworkLayer::ipv4) return of_ipv6_only();
    if (has("--fragid") || has("--fraglen") || has("--fragres"))
      return unsupported("frag is supported with --fragfirst, --fragmore and --fraglast only");
    const auto require = [&](std::uint64_t mask, std::uint64_t value) {
      read_.steps.emplace_back(classify::Test{{Value::fragment_field, number(mask)}, {{number(value), number(value)}}});
    };
    require(0, 0);  // there is a fragment header
    if (has("--fragfirst")) require(0xfff8, 0);
    if (has("--fragmore")) require(1, 1);
    if (has("--fraglast")) require(1, 0);
    return std::move(read_);
  }

  IptablesSteps extension_headers() {
    using Header = classify::ExtensionHeader;
    if (!take({{"--header", 1, true}, {"--soft", 0}})) return std::move(read_);
    if (context_.family == NetworkLayer::ipv4) return of_ipv6_only();
    if (!has("--header")) return refuse(word_, "ipv6header without a header", "--header NAME,…");
    constexpr std::array<std::pair<std::string_view, std::uint8_t>, 23> kHeaders{
        {{"hop", Header::kHopByHop},
         {"hop-by-hop", Header::kHopByHop},
         {"0", Header::kHopByHop},
         {"dst", Header::kDestinationOptions},
         {"ipv6-opts", Header::kDestinationOptions},
         {"60", Header::kDestinationOptions},
         {"route", Header::kRouting},
         {"ipv6-route", Header::kRouting},
         {"43", Header::kRouting},
         {"frag", Header::kFragment},
         {"ipv6-frag", Header::kFragment},
         {"44", Header::kFragment},
         {"auth", Header::kAuthentication},
         {"ah", Header::kAuthentication},
         {"51", Header::kAuthentication},
         {"esp", Header::kEsp},
         {"50", Header::kEsp},
         {"none", Header::kNone},
         {"ipv6-nonxt", Header::kNone},
         {"59", Header::kNone},
         {"prot", Header::kProtocol},
         {"protocol", Header::kProtocol},
         {"255", Header::kProtocol}}};
    std::uint64_t bits = 0;
    for (const std::string_view name : split(given("--header").value->text, ',')) {
      const auto known = std::ranges::find(kHeaders, name, &decltype(kHeaders)::value_type::first);
      if (known == kHeaders.end())
        return refuse(*given("--header").value, "unknown header", "hop-by-hop, ipv6-opts, ipv6-route, ipv6-frag, …");
      bits |= known->second;
    }
    const bool negated = given("--header").negated;
    if (!has("--soft")) return test(Value::extension_headers, 0xff, {{number(bits), number(bits)}}, 0xff, negated);
    // Negated, it has none of them.
    const std::uint64_t wanted = negated ? 0 : bits;
    return test(Value::extension_headers, bits, {{number(wanted), number(wanted)}}, 0xff, false);
  }

  IptablesSteps set_traffic_class() {
    if (!take({{"--set-dscp"}, {"--set-dscp-class"}, {"--set-tos"}})) return std::move(read_);
    classify::SetField set;
    if (name_ == "TOS") {
      const auto tos = has("--set-tos") ? parse_masked(given("--set-tos").value->text) : std::nullopt;
      if (given_.size() != 1 || !tos || tos->value > 0xff)
        return refuse(word_, "TOS needs a value", "--set-tos VALUE/MASK, 8 bits each");
      const bool has_mask = given("--set-tos").value->text.find('/') != std::string::npos;
      set.value = static_cast<std::uint8_t>(tos->value);
      set.keep = static_cast<std::uint8_t>(has_mask ? ~tos->mask : 0);
      return finish(set, true);
    }
    if (given_.size() != 1 || !has("--set-dscp"))
      return unsupported("DSCP by a class is not supported; iptables-save prints --set-dscp");
    const auto value = number_of_option("--set-dscp", 0, 63);
    if (!value) return std::move(read_);
    set.value = static_cast<std::uint8_t>(*value << 2);
    set.keep = 3;
    return finish(set, true);
  }

  /// --ttl-set, --ttl-inc, --ttl-dec
  IptablesSteps set_hop_limit(const std::string& prefix) {
    const std::string set = prefix + "set", add = prefix + "inc", subtract = prefix + "dec";
    if (!take({{set}, {add}, {subtract}})) return std::move(read_);
    if (given_.size() != 1)
      return refuse(word_, "target needs one option", fmt::format("{}, {} or {}", set, add, subtract));
    const std::string_view option = given_.begin()->first;
    const auto value = number_of_option(option, 0, 255);
    if (!value) return std::move(read_);
    using Way = classify::SetField::Way;
    return finish(classify::SetField{classify::SetField::Field::hop_limit,
                                     option == set   ? Way::set
                                     : option == add ? Way::add
                                                     : Way::subtract,
                                     static_cast<std::uint8_t>(*value), 0},
                  true);
  }

  IptablesSteps without_effect() {
    take({{"--set-class"}, {"--checksum-fill", 0}});
    return std::move(read_);
  }

  IptablesSteps log() {
    if (!take({{"--log-prefix"},
               {"--log-level"},
               {"--log-tcp-sequence", 0},
               {"--log-tcp-options", 0},
               {"--log-ip-options", 0},
               {"--log-uid", 0},
               {"--log-macdecode", 0},
               {"--nflog-group"},
               {"--nflog-prefix"},
               {"--nflog-range"},
               {"--nflog-size"},
               {"--nflog-threshold"}}))
      return std::move(read_);
    classify::Log log;
    for (const std::string_view option : {std::string_view("--log-prefix"), std::string_view("--nflog-prefix")}) {
      if (has(option)) log.prefix = given(option).value->text;
    }
    return finish(std::move(log), true);
  }

  std::string_view name_;
  const IptablesWord& word_;
  IptablesWords words_;
  const IptablesStepContext& context_;
  std::map<std::string_view, Given> given_;
  IptablesSteps read_;
};

constexpr auto kMatches = std::to_array<std::string_view>(
    {"limit",  "hashlimit", "connlimit", "recent", "mark", "connmark",   "statistic", "addrtype", "length",
     "tcpmss", "ttl",       "hl",        "dscp",   "mac",  "pkttype",    "quota",     "set",      "rt",
     "nfacct", "helper",    "string",    "time",   "frag", "ipv6header", "rpfilter"});
constexpr auto kTargets = std::to_array<std::string_view>({"MARK", "CONNMARK", "TCPMSS", "SET", "CT", "NOTRACK", "DSCP",
                                                           "TOS", "TTL", "HL", "CLASSIFY", "CHECKSUM", "LOG", "NFLOG"});

}  // namespace

std::optional<std::uint64_t> parse_connection_states(std::string_view list) {
  using classify::Connection;
  using classify::ConnectionState;
  constexpr std::array<std::pair<std::string_view, ConnectionState>, classify::kConnectionStates> kStates{
      {{"INVALID", ConnectionState::invalid},
       {"NEW", ConnectionState::begins},
       {"ESTABLISHED", ConnectionState::established},
       {"RELATED", ConnectionState::related},
       {"UNTRACKED", ConnectionState::untracked}}};
  std::uint64_t connections = 0;
  for (const std::string_view name : split(list, ',')) {
    if (name == "SNAT" || name == "DNAT") {
      connections |= classify::connections_where([&](const Connection& connection) {
        return connection.exists() &&
               (name == "SNAT" ? connection.source_translated : connection.destination_translated);
      });
      continue;
    }
    const auto state = std::ranges::find(kStates, name, &decltype(kStates)::value_type::first);
    if (state == kStates.end()) return std::nullopt;
    connections |=
        classify::connections_where([&](const Connection& connection) { return connection.state == state->second; });
  }
  return connections;
}

std::uint64_t connections_of(std::optional<std::uint64_t> states, std::optional<bool> reply) {
  return classify::connections_where([&](const classify::Connection& connection) {
    const bool named = !states || (*states >> classify::number_of(connection) & 1) != 0;
    if (!connection.exists()) return named && states.has_value();
    return named && (!reply || connection.reply == *reply);
  });
}

bool is_step_match(std::string_view name) noexcept { return std::ranges::find(kMatches, name) != kMatches.end(); }
bool is_step_target(std::string_view name) noexcept { return std::ranges::find(kTargets, name) != kTargets.end(); }

IptablesSteps read_step_match(std::string_view name, IptablesWords words, const IptablesStepContext& context) {
  return StepReader(name, words, context).match();
}

IptablesSteps read_step_target(std::string_view name, IptablesWords words, const IptablesStepContext& context) {
  return StepReader(name, words, context).target();
}

}  // namespace penstock::firewall
