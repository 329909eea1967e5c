// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/iptables_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "base/units.h"
#include "classify/connection.h"
#include "nf/firewall/iptables_steps.h"
#include "nf/firewall/iptables_translation.h"
#include "nf/firewall/rule_text.h"
#include "packet/ip.h"
#include "packet/transport.h"

namespace penstock::firewall {

namespace {

constexpr std::array<std::pair<std::string_view, std::uint8_t>, 8> kFlags{{{"FIN", TcpHeader::kFin},
                                                                           {"SYN", TcpHeader::kSyn},
                                                                           {"RST", TcpHeader::kRst},
                                                                           {"PSH", TcpHeader::kPsh},
                                                                           {"ACK", TcpHeader::kAck},
                                                                           {"URG", TcpHeader::kUrg},
                                                                           {"ALL", 0x3f},
                                                                           {"NONE", 0}}};

std::optional<std::uint8_t> parse_flags(std::string_view text) {
  std::uint8_t flags = 0;
  for (;;) {
    const std::size_t comma = text.find(',');
    const std::string_view name = text.substr(0, comma);
    const auto at = std::find_if(kFlags.begin(), kFlags.end(), [&](const auto& flag) { return flag.first == name; });
    if (at == kFlags.end()) return std::nullopt;
    flags |= at->second;
    if (comma == std::string_view::npos) return flags;
    text.remove_prefix(comma + 1);
  }
}

/// What REJECT sends, by the names of iptables-extensions(8).
struct NamedAnswer {
  std::string_view name, short_name;
  NetworkLayer family;  // none: both
  classify::Answer answer;
};
constexpr NamedAnswer of4(std::string_view name, std::string_view short_name, std::uint8_t code) {
  return {name, short_name, NetworkLayer::ipv4, {false, code, 4}};
}
constexpr NamedAnswer of6(std::string_view name, std::string_view short_name, std::uint8_t code) {
  return {name, short_name, NetworkLayer::ipv6, {false, 3, code}};
}
constexpr std::array<NamedAnswer, 14> kAnswers{{of4("icmp-net-unreachable", "net-unreach", 0),
                                                of4("icmp-host-unreachable", "host-unreach", 1),
                                                of4("icmp-proto-unreachable", "proto-unreach", 2),
                                                of4("icmp-port-unreachable", "port-unreach", 3),
                                                of4("icmp-net-prohibited", "net-prohib", 9),
                                                of4("icmp-host-prohibited", "host-prohib", 10),
                                                of4("icmp-admin-prohibited", "admin-prohib", 13),
                                                of6("icmp6-no-route", "no-route", 0),
                                                of6("icmp6-adm-prohibited", "adm-prohibited", 1),
                                                of6("icmp6-addr-unreachable", "addr-unreach", 3),
                                                of6("icmp6-port-unreachable", "port-unreach", 4),
                                                of6("icmp6-policy-fail", "policy-fail", 5),
                                                of6("icmp6-reject-route", "reject-route", 6),
                                                {"tcp-reset", "tcp-rst", NetworkLayer::none, {true, 3, 4}}}};

struct IcmpType {
  std::uint16_t value = 0, mask = 0;
};

/// "8", "3/1", "any" (255 in older files)
std::optional<IcmpType> parse_icmp_type(std::string_view text, bool ipv6) {
  if (text == "any" || (text == "255" && !ipv6)) return IcmpType{};
  const std::size_t slash = text.find('/');
  const auto type = parse_integer(text.substr(0, slash));
  if (!type || *type > 0xff) return std::nullopt;
  if (slash == std::string_view::npos) return IcmpType{static_cast<std::uint16_t>(*type << 8), 0xff00};
  const auto code = parse_integer(text.substr(slash + 1));
  if (!code || *code > 0xff) return std::nullopt;
  return IcmpType{static_cast<std::uint16_t>(*type << 8 | *code), 0xffff};
}

constexpr std::uint8_t kDccp = 33;
constexpr std::array<std::uint8_t, 5> kWithPorts{ip_protocol::kTcp, ip_protocol::kUdp, ip_protocol::kUdpLite,
                                                 ip_protocol::kSctp, kDccp};
constexpr std::array<std::uint8_t, 1> kTcp{ip_protocol::kTcp}, kUdp{ip_protocol::kUdp}, kSctp{ip_protocol::kSctp},
    kUdpLite{ip_protocol::kUdpLite}, kIcmp{ip_protocol::kIcmp}, kIcmpv6{ip_protocol::kIcmpv6};

/// The protocols of which the rule must have one, not negated. Otherwise iptables or the kernel refuses the rule.
struct Carrier {
  std::span<const std::uint8_t> protocols;  // empty: any rule
  std::string_view expected;
};
constexpr Carrier kAnything{};
constexpr Carrier kOfPorts{kWithPorts, "-p tcp, udp, udplite, sctp or dccp in the rule"};
constexpr Carrier kOfTcp{kTcp, "-p tcp in the rule"};
constexpr Carrier kOfIcmp{kIcmp, "-p icmp in the rule"};
constexpr Carrier kOfIcmpv6{kIcmpv6, "-p ipv6-icmp in the rule"};

enum class Option : std::uint8_t {
  append,
  source,
  destination,
  protocol,
  in_interface,
  out_interface,
  fragment,
  match,
  counters,
  jump,
  go,
  // Options of match extensions.
  source_port,
  destination_port,
  tcp_flags,
  syn,
  source_ports,
  destination_ports,
  either_port,
  source_range,
  destination_range,
  icmp_type,
  icmpv6_type,
  comment,
  connection_state,
  connection_direction,
};

constexpr std::uint32_t bit(Option option) { return std::uint32_t{1} << static_cast<unsigned>(option); }

/// An option as described in iptables(8) and iptables-extensions(8), without its value.
struct OptionEntry {
  std::string_view name, other_name;
  Option option;
  Option once;  // a rule may have only one option with the same value; `match`: any number
  bool negatable;
  const Carrier& carrier;
};

constexpr auto kOptions = std::to_array<OptionEntry>({
    {"-A", "--append", Option::append, Option::append, false, kAnything},
    {"-s", "--source", Option::source, Option::source, true, kAnything},
    {"-d", "--destination", Option::destination, Option::destination, true, kAnything},
    {"-p", "--protocol", Option::protocol, Option::protocol, true, kAnything},
    {"-i", "--in-interface", Option::in_interface, Option::in_interface, true, kAnything},
    {"-o", "--out-interface", Option::out_interface, Option::out_interface, true, kAnything},
    {"-f", "--fragment", Option::fragment, Option::fragment, true, kAnything},
    {"-m", "--match", Option::match, Option::match, false, kAnything},
    {"-c", "--set-counters", Option::counters, Option::counters, false, kAnything},
    {"-j", "--jump", Option::jump, Option::jump, false, kAnything},
    {"-g", "--goto", Option::go, Option::jump, false, kAnything},
    {"--sport", "--source-port", Option::source_port, Option::source_port, true, kOfPorts},
    {"--dport", "--destination-port", Option::destination_port, Option::destination_port, true, kOfPorts},
    {"--tcp-flags", "", Option::tcp_flags, Option::tcp_flags, true, kOfTcp},
    {"--syn", "", Option::syn, Option::tcp_flags, true, kOfTcp},
    {"--sports", "--source-ports", Option::source_ports, Option::either_port, true, kOfPorts},
    {"--dports", "--destination-ports", Option::destination_ports, Option::either_port, true, kOfPorts},
    {"--ports", "", Option::either_port, Option::either_port, true, kOfPorts},
    {"--src-range", "", Option::source_range, Option::source_range, true, kAnything},
    {"--dst-range", "", Option::destination_range, Option::destination_range, true, kAnything},
    {"--icmp-type", "", Option::icmp_type, Option::icmp_type, true, kOfIcmp},
    {"--icmpv6-type", "", Option::icmpv6_type, Option::icmpv6_type, true, kOfIcmpv6},
    {"--comment", "", Option::comment, Option::comment, false, kAnything},
    {"--ctstate", "--state", Option::connection_state, Option::connection_state, true, kAnything},
    {"--ctdir", "", Option::connection_direction, Option::connection_direction, false, kAnything},
});

/// A match extension and its options. After another `-m`, the options may be given again.
struct Extension {
  std::string_view name;
  std::uint32_t options;
  bool of_transport;  // a match on a transport header, which never matches in the kernel if there is none
  Carrier carrier;
};

constexpr std::uint32_t kPortOptions = bit(Option::source_port) | bit(Option::destination_port);
constexpr auto kExtensions = std::to_array<Extension>({
    {"tcp", kPortOptions | bit(Option::tcp_flags), true, kOfTcp},
    {"udp", kPortOptions, true, {kUdp, "-p udp in the rule"}},
    {"sctp", kPortOptions, true, {kSctp, "-p sctp in the rule"}},
    {"udplite", kPortOptions, true, {kUdpLite, "-p udplite in the rule"}},
    {"icmp", bit(Option::icmp_type), true, kOfIcmp},
    {"icmp6", bit(Option::icmpv6_type), true, kOfIcmpv6},
    {"multiport", bit(Option::either_port), false, kOfPorts},
    {"iprange", bit(Option::source_range) | bit(Option::destination_range), false, kAnything},
    {"comment", bit(Option::comment), false, kAnything},
    {"conntrack", bit(Option::connection_state) | bit(Option::connection_direction), false, kAnything},
    {"state", bit(Option::connection_state), false, kAnything},
});

class IptablesRuleReader {
 public:
  IptablesRuleReader(const std::vector<IptablesWord>& words, const IptablesRuleContext& context,
                     classify::Ruleset& rules, Errors& errors)
      : words_(words),
        context_(context),
        family_(context.family),
        translates_(context.translates),
        interfaces_(context.interfaces),
        place_(context.place),
        rules_(rules),
        errors_(errors) {
    rule_.line = place_.line;
    rule_.alternatives.emplace_back();
  }

  IptablesRule read() {
    while (at_ < words_.size() && !failed_) {
      const IptablesWord& word = words_[at_++];
      if (word.text == "!" && !word.quoted) {
        if (negated_ || at_ == words_.size()) mistake(word, "! without an option", "an option after it");
        negated_ = true;
        continue;
      }
      if (!read_option(word)) {
        const bool of_target = rule_.jump == IptablesRule::Jump::call;
        leave_out(of_target ? fmt::format("target {} is not supported", rule_.target)
                            : fmt::format("option {} is not supported", word.text),
                  word);
        skip_arguments();
      }
      negated_ = false;
    }
    require_connections();
    check_carriers();
    finish_later();
    // Without a target, some matches do something nevertheless: `-m recent --set`.
    rule_.continues |= rule_.jump == IptablesRule::Jump::none && ordered_;
    return std::move(rule_);
  }

 private:
  /// The option's argument; an empty word, and an error, at the end of the line.
  const IptablesWord& argument(std::string_view expected) {
    static const IptablesWord kNothing;
    if (at_ < words_.size()) return words_[at_++];
    const IptablesWord& option = words_.back();
    mistake({option.text, option.column, false}, "option without a value", expected);
    return kNothing;
  }

  void mistake(const IptablesWord& word, std::string_view message, std::string_view expected) {
    if (failed_) return;  // nothing after an error in a rule can be interpreted
    failed_ = true;
    errors_.push_back(
        {{place_.file, place_.line, word.column}, std::string(message), in_quotes(word.text), std::string(expected)});
  }

  /// Leaves the whole rule out: without the unsupported part, it would match too much.
  void leave_out(std::string reason, const IptablesWord& word) {
    if (!rule_.unsupported.empty()) return;
    rule_.unsupported = std::move(reason);
    rule_.column = word.column;
  }

  void skip_arguments() {
    while (at_ < words_.size() && (words_[at_].quoted || (words_[at_].text != "!" && words_[at_].text[0] != '-')))
      ++at_;
  }

  /// What the rule requires next. Conditions after a step that depends on earlier packets are steps, too; but iptables
  /// compares what is no match extension first.
  std::vector<Alternative>& alternatives() {
    if (!ordered_ || basic_) return rule_.alternatives;
    if (later_.empty()) later_.emplace_back();
    return later_;
  }

  void finish_later() {
    if (!later_.empty()) rule_.steps.emplace_back(classify::AnyOf{std::exchange(later_, {})});
  }

  void add(IptablesSteps read) {
    if (read.mistaken != nullptr) return mistake(*read.mistaken, read.message, read.expected);
    rule_.continues &= !read.only_observes;
    if (!read.unsupported.empty()) return leave_out(std::move(read.unsupported), words_[at_ - 1]);
    finish_later();
    ordered_ |= read.ordered;
    for (classify::Step& step : read.steps) rule_.steps.push_back(std::move(step));
  }

  [[nodiscard]] IptablesStepContext step_context() const {
    return {family_,
            rules_,
            context_.text,
            context_.host,
            context_.ipsets,
            context_.changed_ipsets,
            context_.set_values_left};
  }

  void require(const classify::Condition& condition) {
    if (alternatives().front().conditions.size() == kMostConditions) {
      return mistake(words_[at_ - 1], "too many conditions in a rule", fmt::format("at most {}", kMostConditions));
    }
    for (Alternative& alternative : alternatives()) alternative.conditions.push_back(condition);
  }

  /// Adds the condition that one of `choices` must hold.
  void require_one_of(const std::vector<classify::Condition>& choices) {
    constexpr std::size_t kMostAlternatives = 4096;
    if (alternatives().size() * choices.size() > kMostAlternatives) {
      return mistake(words_[at_ - 1], "too many pairs of addresses in a rule",
                     fmt::format("at most {}", kMostAlternatives));
    }
    std::vector<Alternative> product;
    for (const Alternative& alternative : alternatives()) {
      for (const classify::Condition& choice : choices) {
        product.push_back(alternative);
        product.back().conditions.push_back(choice);
      }
    }
    alternatives() = std::move(product);
  }

  bool read_option(const IptablesWord& word) {
    const auto entry = std::ranges::find_if(kOptions, [&](const OptionEntry& known) {
      return !word.quoted && !word.text.empty() && (word.text == known.name || word.text == known.other_name);
    });
    if (entry == kOptions.end()) return false;
    if (negated_ && !entry->negatable) {
      mistake(word, "option cannot be negated", "the option without !");
    } else if (entry->option != Option::match && (seen_ & bit(entry->once)) != 0) {
      mistake(word, "option given twice", "once in a rule");
    } else {
      seen_ |= bit(entry->once);
      if (!entry->carrier.protocols.empty()) carried_.push_back({&word, &entry->carrier});
      read_value(entry->option, word);
    }
    return true;
  }

  void read_value(Option option, const IptablesWord& word) {
    basic_ = option <= Option::fragment;
    switch (option) {
      case Option::append: rule_.chain = argument("a chain").text; return;
      case Option::source: return read_address(true);
      case Option::destination: return read_address(false);
      case Option::protocol: return read_protocol();
      case Option::in_interface: return read_interface(classify::Subject::in_port);
      case Option::out_interface: return read_out_interface(word);
      case Option::fragment: return read_fragment(word);
      case Option::match: return read_match();
      case Option::counters:
        static_cast<void>(argument("packets"));
        static_cast<void>(argument("bytes"));
        return;
      case Option::jump: return read_jump();
      case Option::go: return read_chain(IptablesRule::Jump::go, argument("a chain"));
      case Option::source_port: return read_ports(classify::Subject::source_port, false);
      case Option::destination_port: return read_ports(classify::Subject::destination_port, false);
      case Option::tcp_flags: return read_tcp_flags();
      case Option::syn: return require(classify::tcp_flags_condition(TcpHeader::kSyn, kSynMask, negated_));
      case Option::source_ports: return read_ports(classify::Subject::source_port, true);
      case Option::destination_ports: return read_ports(classify::Subject::destination_port, true);
      case Option::either_port: return read_either_port();
      case Option::source_range: return read_range(true);
      case Option::destination_range: return read_range(false);
      case Option::icmp_type: return read_icmp(ip_protocol::kIcmp);
      case Option::icmpv6_type: return read_icmp(ip_protocol::kIcmpv6);
      case Option::comment: static_cast<void>(argument("a comment")); return;
      case Option::connection_state: return read_connection_state();
      case Option::connection_direction: return read_connection_direction();
    }
  }

  static constexpr std::uint8_t kSynMask = TcpHeader::kFin | TcpHeader::kSyn | TcpHeader::kRst | TcpHeader::kAck;

  void read_address(bool source) {
    const bool ipv4 = family_ == NetworkLayer::ipv4;
    const std::string_view expected = ipv4 ? "an IPv4 address or prefix" : "an IPv6 address or prefix";
    const IptablesWord& word = argument(expected);
    std::vector<classify::Condition> choices;
    for (std::string_view rest = word.text;;) {
      const std::size_t comma = rest.find(',');
      const std::string_view text = rest.substr(0, comma);
      const auto range = parse_address(text);
      if (!range && has_scattered_mask(text)) return read_scattered(word, comma != std::string_view::npos, source);
      if (!range || range->family != family_) return mistake(word, "wrong address", expected);
      // All addresses: no condition is needed, unless it is negated and can never hold.
      if (range->everything() && !negated_) return;
      choices.push_back(address_condition(rules_, *range, source, negated_));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    if (choices.size() > 1 && negated_)
      return mistake(word, "list of addresses cannot be negated", "one address or prefix");
    require_one_of(choices);
  }

  /// 10.0.0.1/255.0.0.255
  void read_scattered(const IptablesWord& word, bool is_list, bool source) {
    if (is_list) return leave_out("netmask with gaps in a list is not supported", word);
    const auto address = parse_masked_address(word.text, family_);
    if (!address) return mistake(word, "wrong address", "one address with its mask");
    const classify::Value value = source ? classify::Value::source : classify::Value::destination;
    rule_.steps.insert(rule_.steps.begin(),
                       classify::Test{{value, address->second}, {{address->first, address->first}}, negated_});
  }

  void read_range(bool source) {
    const IptablesWord& word = argument("FIRST-LAST");
    const auto range = parse_address_range(word.text);
    if (!range || range->family != family_) {
      return mistake(
          word, "wrong address range",
          family_ == NetworkLayer::ipv4 ? "two IPv4 addresses, FIRST-LAST" : "two IPv6 addresses, FIRST-LAST");
    }
    require(address_condition(rules_, *range, source, negated_));
  }

  void read_protocol() {
    const IptablesWord& word = argument("a protocol");
    if (word.text == "all" || word.text == "0") {
      // Protocol 0 means all protocols, as in iptables, which refuses "not all".
      if (negated_) mistake(word, "rule that matches no protocol", "a protocol");
      return;
    }
    const auto protocol = parse_protocol(word.text);
    if (!protocol) return mistake(word, "unknown protocol", "tcp, udp, icmp, … or a number up to 255");
    require(classify::protocol_condition(*protocol, 0xff, negated_));
    named_protocol_ = *protocol;
    if (!negated_) protocol_ = *protocol;
  }

  void read_interface(classify::Subject subject) {
    const IptablesWord& word = argument("an interface");
    if (word.text == "+") {
      if (negated_) require(classify::interface_condition(subject, 0, false));  // no interface: never holds
      return;
    }
    rules_.interface_names.insert(word.text);
    const auto ports = interfaces_.ports_of(word.text);
    if (!ports) {
      rule_.unknown_interfaces.push_back(
          {{place_.file, place_.line, word.column},
           "unknown interface",
           in_quotes(word.text),
           fmt::format("a port of the chain ({}), or a name that `interfaces` maps to one or to {}",
                       interfaces_.port_names(), classify::Interfaces::kNone)});
      return;
    }
    require(classify::interface_condition(subject, *ports, negated_));
  }

  void read_out_interface(const IptablesWord& option) {
    // By an interface that is no port, such as the loopback, no packet leaves in any case.
    const bool is_no_port = at_ < words_.size() && interfaces_.ports_of(words_[at_].text) == std::uint64_t{0};
    if (!interfaces_.out_known && !is_no_port) {
      rules_.interface_names.insert(argument("an interface").text);
      return leave_out(fmt::format("-o is supported only after a function that chooses the port, such as router{}",
                                   context_.at_output ? kOutputAfterRouter : ""),
                       option);
    }
    read_interface(classify::Subject::out_port);
  }

  void read_fragment(const IptablesWord& option) {
    if (family_ == NetworkLayer::ipv6)
      return mistake(option, "option is for IPv4 rules only", "an option of ip6tables");
    require({classify::Subject::later_fragment, negated_, 0, 0, 0, 0});
  }

  void read_match() {
    const IptablesWord& word = argument("a match extension");
    if (is_step_match(word.text) || (word.text == "conntrack" && asks_for_tuples())) {
      require_connections();  // of the match before it
      return add(read_step_match(word.text, {words_, at_}, step_context()));
    }
    const auto extension = std::ranges::find(kExtensions, word.text, &Extension::name);
    if (extension == kExtensions.end()) {
      const std::string_view why = word.text == "policy"      ? ": rules do not know what was encrypted"
                                   : word.text == "connbytes" ? ": packets of connections are not counted"
                                                              : "";
      return leave_out(fmt::format("match extension {} is not supported{}", word.text, why), word);
    }
    seen_ &= ~extension->options;
    require_connections();  // of the match before it
    if (!extension->carrier.protocols.empty()) carried_.push_back({&word, &extension->carrier});
    if (extension->of_transport) require({classify::Subject::transport, false, 0, 0, 0, 0});
  }

  /// Whether this match on connections has more than a state and a direction.
  [[nodiscard]] bool asks_for_tuples() const {
    for (std::size_t i = at_; i < words_.size(); ++i) {
      const IptablesWord& word = words_[i];
      if (word.quoted) continue;
      if (word.text == "-m" || word.text == "-j" || word.text == "-g") return false;
      if (word.text.starts_with("--ct") && word.text != "--ctstate" && word.text != "--ctdir") return true;
    }
    return false;
  }

  void read_connection_state() {
    constexpr std::string_view kExpected =
        "INVALID, NEW, ESTABLISHED, RELATED, UNTRACKED, SNAT or DNAT, separated by commas";
    const IptablesWord& word = argument(kExpected);
    const auto connections = parse_connection_states(word.text);
    if (!connections) return mistake(word, "unknown connection state", kExpected);
    connections_ = negated_ ? ~*connections : *connections;
  }

  void read_connection_direction() {
    const IptablesWord& word = argument("ORIGINAL or REPLY");
    if (word.text != "ORIGINAL" && word.text != "REPLY") return mistake(word, "unknown direction", "ORIGINAL or REPLY");
    reply_ = word.text == "REPLY";
  }

  /// Requires what a match on connections has asked for.
  void require_connections() {
    const auto connections = std::exchange(connections_, std::nullopt);
    const auto reply = std::exchange(reply_, std::nullopt);
    if (!connections && !reply) return;
    require(classify::connection_condition(connections_of(connections, reply)));
  }

  /// Called at the end of the rule, because `-p` may follow the match. In a rule that is left out, not all words are
  /// known.
  void check_carriers() {
    if (!rule_.unsupported.empty()) return;
    for (const auto& [word, carrier] : carried_) {
      if (protocol_ && std::ranges::find(carrier->protocols, *protocol_) != carrier->protocols.end()) continue;
      return mistake(*word, "match needs a different protocol than the rule's", carrier->expected);
    }
    if (translated_ports_ == nullptr || (named_protocol_ && may_translate_ports(*named_protocol_))) return;
    mistake(*translated_ports_, "a port without a protocol that has ports",
            "-p tcp, udp, sctp, dccp or icmp in the rule");
  }

  std::optional<std::vector<classify::PortRange>> port_argument(bool list) {
    const std::string_view expected =
        list ? "ports and ranges up to 65535, such as 53,100:200" : "a port or a range LOW:HIGH up to 65535";
    const IptablesWord& word = argument(expected);
    constexpr std::size_t kMostPorts = 15;  // XT_MULTI_PORTS
    auto ranges = parse_port_list(word.text);
    if (!ranges || (!list && ranges->size() > 1)) {
      mistake(word, "wrong port", expected);
      return std::nullopt;
    }
    const auto colons = static_cast<std::size_t>(std::ranges::count(word.text, ':'));
    if (list && ranges->size() + colons > kMostPorts) {
      mistake(word, "too many ports", fmt::format("at most {}, where a range counts as two", kMostPorts));
      return std::nullopt;
    }
    if (protocol_ == kDccp) leave_out("ports of DCCP are not supported", word);
    return ranges;
  }

  void read_ports(classify::Subject subject, bool list) {
    if (const auto ranges = port_argument(list)) require(classify::port_condition(rules_, subject, *ranges, negated_));
  }

  void read_either_port() {
    const auto ranges = port_argument(true);
    if (!ranges) return;
    const classify::Condition source =
        classify::port_condition(rules_, classify::Subject::source_port, *ranges, negated_);
    const classify::Condition destination =
        classify::port_condition(rules_, classify::Subject::destination_port, *ranges, negated_);
    if (!negated_) return require_one_of({source, destination});
    require(source);
    require(destination);
  }

  void read_tcp_flags() {
    constexpr std::string_view kExpected = "SYN, ACK, FIN, RST, URG, PSH, ALL or NONE, separated by commas";
    const IptablesWord& mask_word = argument(kExpected);
    const auto mask = parse_flags(mask_word.text);
    if (!mask) return mistake(mask_word, "unknown TCP flag", kExpected);
    const IptablesWord& value_word = argument(kExpected);
    const auto value = parse_flags(value_word.text);
    if (!value) return mistake(value_word, "unknown TCP flag", kExpected);
    // A flag that must be set but is not in the mask: as in the kernel's comparison, this never holds.
    if ((*value & ~*mask) != 0) return require(never(negated_));
    require(classify::tcp_flags_condition(*value, *mask, negated_));
  }

  /// A condition that holds for no TCP packet, or, if negated, for all.
  static classify::Condition never(bool negated) {
    return {classify::Subject::detail, negated, 0, ip_protocol::kTcp, 0xff00, 0xff00};
  }

  void read_icmp(std::uint8_t protocol) {
    const IptablesWord& word = argument("an ICMP type such as 8, 3/1 or any");
    const auto type = parse_icmp_type(word.text, protocol == ip_protocol::kIcmpv6);
    if (!type) return mistake(word, "wrong ICMP type", "TYPE, TYPE/CODE, each up to 255, or any");
    require(classify::icmp_condition(protocol, type->value, type->mask, negated_));
  }

  /// Whether the rule changes what other rules ask for.
  [[nodiscard]] bool changes_lists() const {
    return std::ranges::any_of(rule_.steps, [](const classify::Step& step) {
      return std::holds_alternative<classify::Recent>(step) || std::holds_alternative<classify::Update>(step);
    });
  }
  /// CLASSIFY and CHECKSUM are for the kernel's queues and network cards.
  [[nodiscard]] bool has_no_effect(std::string_view target) const {
    return (!context_.logs && (target == "LOG" || target == "NFLOG")) || target == "CLASSIFY" || target == "CHECKSUM";
  }

  void read_jump() {
    using Jump = IptablesRule::Jump;
    const IptablesWord& word = argument("a target");
    if (word.text == "ACCEPT") {
      rule_.jump = Jump::accept;
    } else if (word.text == "DROP") {
      rule_.jump = Jump::drop;
    } else if (word.text == "REJECT") {
      rule_.jump = Jump::reject;
      if (at_ < words_.size() && words_[at_].text == "--reject-with") {
        ++at_;
        read_answer();
      }
    } else if (word.text == "RETURN") {
      rule_.jump = Jump::give_back;
    } else if (is_step_target(word.text) && !has_no_effect(word.text)) {
      // Rules without a target continue, too.
      require_connections();
      rule_.continues = true;
      add(read_step_target(word.text, {words_, at_}, step_context()));
    } else if (is_step_target(word.text) && changes_lists()) {
      // What the rule does besides that, such as `-m recent --set`, it does nevertheless.
      IptablesSteps log = read_step_target(word.text, {words_, at_}, step_context());
      log.steps.clear();
      add(std::move(log));
    } else if (const TranslationTarget* const target = translates_ ? translation_target(word.text) : nullptr) {
      rule_.jump = Jump::translate;
      using Way = classify::Translation::Way;
      classify::Translation translation{target->way};
      const bool of_source = translation.way == Way::source || translation.way == Way::masquerade;
      const bool at_destinations = rule_.chain == "PREROUTING" || rule_.chain == "OUTPUT";
      const bool at_sources = rule_.chain == "POSTROUTING" || rule_.chain == "INPUT";
      if (target->name != "NETMAP" && (of_source ? at_destinations : at_sources))
        return mistake(word, "wrong target for this chain", of_source ? "POSTROUTING" : "PREROUTING");
      if (translation.way == Way::masquerade && rule_.chain == "INPUT")
        return mistake(word, "wrong target for this chain", "POSTROUTING");
      read_translation(*target, word, translation);
      rule_.translation = translation;
    } else {
      read_chain(Jump::call, word);
    }
  }

  /// The options of a target, each at most once.
  void read_translation(const TranslationTarget& target, const IptablesWord& word, classify::Translation& translation) {
    bool has_value = false;
    while (at_ < words_.size() && !words_[at_].quoted) {
      const IptablesWord& option = words_[at_];
      const std::uint8_t flag = translation_flag(option.text);
      const bool is_value = option.text == target.value;
      if (!is_value && (flag & target.flags) == 0) break;
      ++at_;
      if (is_value ? has_value : translation.range.has(flag))
        return mistake(option, "option given twice", "once in a rule");
      translation.range.flags |= flag;
      if (!is_value) continue;
      has_value = true;
      const IptablesWord& value = argument("what to translate to");
      if (!read_translation_value(option.text, value.text, family_, translation))
        return mistake(value, "wrong translation", "ADDRESS[-ADDRESS][:PORT[-PORT]], a prefix or ports");
      if (translation.range.has(conntrack::NatRange::kPorts)) translated_ports_ = &value;
    }
    if (!has_value && target.needs_value)
      mistake(word, "a target without what it translates to", fmt::format("{} {} …", word.text, target.value));
  }

  void read_answer() {
    const IptablesWord& word = argument("an ICMP type or tcp-reset");
    const bool ipv6 = family_ == NetworkLayer::ipv6;
    const auto matches = [&](const NamedAnswer& known) {
      return (known.name == word.text || known.short_name == word.text) &&
             (known.family == NetworkLayer::none || family_ == NetworkLayer::none || known.family == family_);
    };
    const auto known = std::ranges::find_if(kAnswers, matches);
    if (known != kAnswers.end()) {
      rule_.answer = known->answer;
      return;
    }
    mistake(word, "unknown answer",
            ipv6 ? "icmp6-port-unreachable, icmp6-adm-prohibited, … or tcp-reset"
                 : "icmp-port-unreachable, icmp-admin-prohibited, … or tcp-reset");
  }

  void read_chain(IptablesRule::Jump jump, const IptablesWord& word) {
    rule_.jump = jump;
    rule_.target = word.text;
    rule_.target_column = word.column;
  }

  const std::vector<IptablesWord>& words_;
  const IptablesRuleContext& context_;
  NetworkLayer family_;
  bool translates_;
  const classify::Interfaces& interfaces_;
  const Place& place_;
  classify::Ruleset& rules_;
  Errors& errors_;
  IptablesRule rule_;
  std::vector<Alternative> later_;  // required since the last step; empty: nothing
  bool basic_ = false;              // the current option is of no match extension
  bool ordered_ = false;            // a step depends on which packets reach it
  std::size_t at_ = 0;
  bool negated_ = false;
  bool failed_ = false;
  std::optional<std::uint8_t> protocol_;  // unless it is negated
  std::optional<std::uint8_t> named_protocol_;
  const IptablesWord* translated_ports_ = nullptr;  // to which the target translates; null: to none
  std::optional<std::uint64_t> connections_;        // of a match that is being read
  std::optional<bool> reply_;                       // ditto
  std::uint32_t seen_ = 0;                          // bits of options, by their `once`
  std::vector<std::pair<const IptablesWord*, const Carrier*>> carried_;
};

}  // namespace

bool split_iptables(std::string_view line, std::vector<IptablesWord>& words) {
  words.clear();
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == ' ' || line[i] == '\t') {
      ++i;
      continue;
    }
    IptablesWord word;
    word.column = static_cast<std::uint32_t>(i + 1);
    bool open = false;
    for (; i < line.size() && (open || (line[i] != ' ' && line[i] != '\t')); ++i) {
      if (line[i] == '"') {
        open = !open;
        word.quoted = true;
      } else if (line[i] == '\\' && open && i + 1 < line.size()) {
        word.text += line[++i];
      } else {
        word.text += line[i];
      }
    }
    if (open) return false;
    words.push_back(std::move(word));
  }
  return true;
}

IptablesRule read_iptables_rule(const std::vector<IptablesWord>& words, const IptablesRuleContext& context,
                                classify::Ruleset& rules, Errors& errors) {
  return IptablesRuleReader(words, context, rules, errors).read();
}

}  // namespace penstock::firewall
