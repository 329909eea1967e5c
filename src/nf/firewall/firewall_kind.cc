// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The parameters of `firewall`, and how it is built from them.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/host_address.h"
#include "base/ip_address.h"
#include "base/text_file.h"
#include "base/units.h"
#include "classify/interval_set.h"
#include "conntrack/options.h"
#include "function/interface_names.h"
#include "function/unsupported.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/nftables/digest.h"
#include "nf/firewall/nftables/nft.h"
#include "nf/firewall/rule_reader.h"

namespace penstock::firewall {

namespace {

constexpr auto kParameters = std::to_array<Parameter>({
    {"rules", ParameterType::path, "", "kernel",
     "output of iptables-save, ip6tables-save or `nft -j list ruleset`, a file of nft, a ClassBench filter set, or the "
     "rules that the kernel's nftables has",
     true},
    {"format", ParameterType::choice, "auto", "auto|classbench|iptables|ip6tables|nftables|nft", "format of the rules",
     false},
    {"netns", ParameterType::text, "", "",
     "with `rules: kernel`, the network namespace whose rules apply, instead of that of the process", false},
    {"ipsets", ParameterType::path, "", "", "iptables: output of `ipset save`, with the sets that rules use", false},
    {"hook", ParameterType::choice, "", "prerouting|input|forward|output|postrouting",
     "the hook of nftables or iptables that the function stands for in this place of the chain, with its filters and, "
     "except at forward, translations of addresses; if not given: forward, and rules at other hooks are refused",
     false},
    {"family", ParameterType::choice, "inet", "inet|bridge",
     "whose tables of nftables apply: inet: those of inet, ip and ip6, to routed packets; bridge: those of bridge, to "
     "frames of all protocols, in a chain without a router",
     false},
    {"host", ParameterType::text, "", "",
     "with `hook`, the port at whose other end this host is: packets to it pass the hook input, and those that it "
     "sends "
     "the hook output",
     false},
    {"addresses", ParameterType::pairs, "", "",
     "the host's addresses of ports, for masquerade, redirect, and rules that ask for local or broadcast addresses or "
     "for routes, the latter with prefix lengths: {wan: 203.0.113.5/24 2001:db8::5/64}",
     false},
    {"mtus", ParameterType::pairs, "", "",
     "the largest packets of ports, for rules that clamp TCP's segment size to them; default: 1500: {wan: 1492}",
     false},
    {"chain", ParameterType::text, "", "",
     "iptables: the chain of the filter table where packets start, instead of FORWARD", false},
    {"policy", ParameterType::choice, "", "accept|drop|reject",
     "verdict if no rule matches, instead of the chain's policy; default for ClassBench: drop", false},
    {"match", ParameterType::choice, "", "accept|drop|reject|first|last",
     "ClassBench: verdict of packets that match a rule, instead of accept; first and last: the same as `decides`",
     false},
    {"decides", ParameterType::choice, "", "first|last",
     "which of several matching rules decides, instead of the first", false},
    {"engine", ParameterType::choice, "bitvector", "bitvector|linear|rfc", "classification algorithm", false},
    {"interfaces", ParameterType::pairs, "", "",
     "ports for the interfaces in the rules: {eth0: lan, ppp*: wan, lo: none}", false},
    {"most_rules", ParameterType::integer, "1000000", "1..100000000",
     "maximum number of rules, both in the file and after calls to chains are expanded", false},
    {"answers", ParameterType::flag, "", "",
     "whether rejected packets are answered, by an ICMP error or a TCP reset; default: true for those that do not come "
     "from files",
     false},
    {"connections", ParameterType::integer, "", "1..100000000",
     "track connections, also if no rule tests them yet: their maximum number, of each worker; otherwise 262144 if a "
     "rule tests them",
     false},
    {"timeouts", ParameterType::pairs, "", "",
     "how long connections live without packets, instead of as in Linux: {tcp_established: 1h, udp: 1m}", false},
    {"checksum", ParameterType::flag, "", "",
     "whether packets with a wrong TCP, UDP or ICMP checksum are invalid; false where the interface has checked them; "
     "default: true",
     false},
    {"tcp_loose", ParameterType::flag, "", "",
     "whether TCP connections whose handshake was not seen are tracked too; default: true", false},
    {"tcp_be_liberal", ParameterType::flag, "", "",
     "whether TCP segments outside of the window are valid; default: false", false},
    {"helpers", ParameterType::pairs, "", "",
     "helpers that find out which connections belong to others, with the ports of their servers: {ftp: 21}", false},
    {"port_blocks", ParameterType::pairs, "", "",
     "hosts whose source is translated get blocks of ports, as in a carrier's NAT: {size: 512, per_host: 8, hold: "
     "120s, "
     "first_port: 1024, addresses: 256}, which are the defaults",
     false},
    {"connections_file", ParameterType::output, "", "",
     "keeps connections from one run to the next: read when a run begins, written at its end", false},
    function::kUnsupportedParameter,
});

/// The key in `outputs`.
constexpr std::string_view kPacketLog = "packet_log", kNatLog = "nat_log";

using conntrack::Timeouts;
/// By the names that Linux has for them (nf_conntrack-sysctl).
constexpr auto kTimeouts = std::to_array<std::pair<std::string_view, std::uint32_t Timeouts::*>>({
    {"tcp_syn_sent", &Timeouts::tcp_syn_sent},
    {"tcp_syn_recv", &Timeouts::tcp_syn_recv},
    {"tcp_established", &Timeouts::tcp_established},
    {"tcp_fin_wait", &Timeouts::tcp_fin_wait},
    {"tcp_close_wait", &Timeouts::tcp_close_wait},
    {"tcp_last_ack", &Timeouts::tcp_last_ack},
    {"tcp_time_wait", &Timeouts::tcp_time_wait},
    {"tcp_close", &Timeouts::tcp_close},
    {"tcp_max_retrans", &Timeouts::tcp_max_retrans},
    {"tcp_unacknowledged", &Timeouts::tcp_unacknowledged},
    {"udp", &Timeouts::udp},
    {"udp_stream", &Timeouts::udp_stream},
    {"icmp", &Timeouts::icmp},
    {"icmpv6", &Timeouts::icmpv6},
    {"gre", &Timeouts::gre},
    {"gre_stream", &Timeouts::gre_stream},
    {"generic", &Timeouts::generic},
});

/// {ftp: 21 2121}
Errors read_helpers(const Parameters& parameters, conntrack::Options& options) {
  Errors errors;
  const std::vector<std::string>& given = parameters.texts("helpers");
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::size_t equals = given[i].find('=');
    const std::string_view name = std::string_view(given[i]).substr(0, equals);
    const auto refuse = [&](std::string what, std::string_view found, std::string expected) {
      errors.push_back({parameters.place("helpers", i), std::move(what), in_quotes(found), std::move(expected)});
    };
    if (name != "ftp") {
      refuse("unknown helper", name, "ftp");
      continue;
    }
    std::set<std::uint16_t> ports;
    for (const std::string_view text : split(std::string_view(given[i]).substr(equals + 1), ' ')) {
      const auto port = parse_integer(text);
      if (!port || *port == 0 || *port > 0xffff) {
        refuse("wrong port of a helper", text, "ports from 1 to 65535, with spaces between them");
      } else if (!ports.insert(static_cast<std::uint16_t>(*port)).second) {
        refuse("a port of a helper twice", text, "each port once");
      }
    }
    if (ports.size() > conntrack::FtpHelper::kMostPorts) {
      refuse("too many ports of a helper", std::to_string(ports.size()),
             fmt::format("at most {}", conntrack::FtpHelper::kMostPorts));
      continue;
    }
    options.ftp.offered = true;
    std::ranges::copy(ports, options.ftp.ports.begin());
  }
  return errors;
}

/// {size: 512, hold: 120s}
Errors read_port_blocks(const Parameters& parameters, conntrack::Options& options) {
  conntrack::PortBlockOptions blocks;
  Errors errors;
  const std::vector<std::string>& given = parameters.texts("port_blocks");
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::size_t equals = given[i].find('=');
    const std::string_view name = std::string_view(given[i]).substr(0, equals);
    const std::string_view value = std::string_view(given[i]).substr(equals + 1);
    const auto refuse = [&](std::string what, std::string_view found, std::string expected) {
      errors.push_back({parameters.place("port_blocks", i), std::move(what), in_quotes(found), std::move(expected)});
    };
    const auto read = [&](auto& into, std::uint64_t least, std::uint64_t most) {
      const auto number = parse_integer(value);
      if (!number || *number < least || *number > most) {
        return refuse(fmt::format("wrong {} of port blocks", name), value,
                      fmt::format("a number from {} to {}", least, most));
      }
      into = static_cast<std::remove_reference_t<decltype(into)>>(*number);
    };
    if (name == "size") {
      read(blocks.size, conntrack::PortBlockOptions::kSizeStep, conntrack::PortBlockOptions::kMostSize);
      if (blocks.size % conntrack::PortBlockOptions::kSizeStep != 0)
        refuse("wrong size of port blocks", value,
               fmt::format("a multiple of {}", conntrack::PortBlockOptions::kSizeStep));
    } else if (name == "per_host") {
      read(blocks.per_host, 1, 64);
    } else if (name == "first_port") {
      read(blocks.first_port, 1, 65'536 - conntrack::PortBlockOptions::kSizeStep);
    } else if (name == "addresses") {
      read(blocks.most_addresses, 1, 4096);
    } else if (name == "hold") {
      const auto hold = parse_duration(value);
      if (!hold || *hold > std::chrono::hours{24}) {
        refuse("wrong hold of port blocks", value, "a time from 0s to 24h");
      } else {
        blocks.hold_s = static_cast<std::uint32_t>(std::chrono::ceil<std::chrono::seconds>(*hold).count());
      }
    } else {
      refuse("unknown property of port blocks", name, "size, per_host, hold, first_port, addresses");
    }
  }
  if (errors.empty() && blocks.first_port + blocks.size > 65'536) {
    errors.push_back({parameters.place("port_blocks"), "first_port of port blocks leaves no room for a block",
                      in_quotes(std::to_string(blocks.first_port)),
                      fmt::format("at most {} with this size", 65'536 - blocks.size)});
  }
  options.port_blocks = blocks;
  return errors;
}

/// Whether rules translate as port blocks can.
Errors check_port_blocks(const classify::Ruleset& translations, const Parameters& parameters) {
  using Way = classify::Translation::Way;
  Errors errors;
  for (const classify::Rule& rule : translations.rules) {
    if (!rule.translation || !rule.translation->range.has(conntrack::NatRange::kPorts)) continue;
    if (rule.translation->way != Way::source && rule.translation->way != Way::masquerade) continue;
    errors.push_back({parameters.place("port_blocks"), "a rule says to which ports sources are translated",
                      in_quotes(rule.text), "a rule without ports: they come from the host's blocks"});
  }
  return errors;
}

Result<conntrack::Options> tracking_options(const Parameters& parameters) {
  conntrack::Options options;
  if (parameters.has("connections"))
    options.most_connections = static_cast<std::uint32_t>(parameters.integer("connections"));
  if (parameters.has("checksum")) options.checksum = parameters.flag("checksum");
  if (parameters.has("tcp_loose")) options.tcp_loose = parameters.flag("tcp_loose");
  if (parameters.has("tcp_be_liberal")) options.tcp_be_liberal = parameters.flag("tcp_be_liberal");
  Errors errors;
  if (parameters.has("helpers")) errors = read_helpers(parameters, options);
  if (parameters.has("port_blocks")) append(errors, read_port_blocks(parameters, options));
  constexpr std::chrono::hours kLongest{24 * 365};
  static const std::vector<std::string> kNone;
  const std::vector<std::string>& given = parameters.has("timeouts") ? parameters.texts("timeouts") : kNone;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::size_t equals = given[i].find('=');
    const std::string_view name = std::string_view(given[i]).substr(0, equals);
    const std::string_view value = std::string_view(given[i]).substr(equals + 1);
    const auto timeout = std::ranges::find(kTimeouts, name, &decltype(kTimeouts)::value_type::first);
    if (timeout == kTimeouts.end()) {
      std::string names;
      for (const auto& known : kTimeouts) names += fmt::format("{}{}", names.empty() ? "" : ", ", known.first);
      errors.push_back({parameters.place("timeouts", i), "unknown timeout", in_quotes(name), std::move(names)});
      continue;
    }
    const auto duration = parse_duration(value);
    if (!duration || *duration < std::chrono::seconds{1} || *duration > kLongest) {
      errors.push_back({parameters.place("timeouts", i), "wrong timeout", in_quotes(value), "a time from 1s to 8760h"});
      continue;
    }
    options.timeouts.*timeout->second =
        static_cast<std::uint32_t>(std::chrono::ceil<std::chrono::seconds>(*duration).count());
  }
  if (!errors.empty()) return failure(std::move(errors));
  return options;
}

/// Warns about packets that pass although a reader of the file may believe that they are filtered.
Errors cautions(const classify::Ruleset& rules, const Parameters& parameters) {
  Errors cautions;
  const auto caution = [&](std::string message, std::string expected) {
    cautions.push_back({parameters.place("rules"), std::move(message), "", std::move(expected)});
  };
  const auto tried = [&](NetworkLayer family) {
    return std::ranges::any_of(rules.entries, [&](const classify::Entry& entry) {
      return entry.family == family || entry.family == NetworkLayer::none;
    });
  };
  if (rules.entries.empty() && rules.ipv4_policy == classify::Target::accept &&
      rules.ipv6_policy == classify::Target::accept) {
    caution("all packets pass: the policy is accept, and there are no rules to apply",
            parameters.has("hook") ? fmt::format("rules at hook {}", parameters.text("hook"))
                                   : "rules in the chain where packets start");
    return cautions;
  }
  if (rules.ipv4_policy == classify::Target::accept && !tried(NetworkLayer::ipv4)) {
    caution("all IPv4 packets pass: the policy is accept, and no rule applies to them",
            "rules for IPv4, or a policy that drops");
  }
  if (rules.ipv6_policy == classify::Target::accept && !tried(NetworkLayer::ipv6)) {
    caution("all IPv6 packets pass: the policy is accept, and no rule applies to them",
            "rules for IPv6, or a policy that drops");
  }
  return cautions;
}

/// Empty: the rules come from a file.
Result<std::optional<FromKernel>> read_from_kernel(const Parameters& parameters, const Firewall* running) {
  std::optional<FromKernel> from;
  if (parameters.is_word("rules")) from.emplace();
  if (from && parameters.has("netns")) from->netns = parameters.text("netns");
  if (!from && parameters.has("netns")) {
    return failure(Error{parameters.place("netns"), "a network namespace, but the rules come from a file",
                         in_quotes(parameters.text("netns")), "`rules: kernel`"});
  }
  const std::string& format = parameters.text("format");
  if (from && format != "auto" && format != "nftables") {
    return failure(Error{parameters.place("format"), "`format` is set, but the kernel's rules have one already",
                         in_quotes(format), "`format: auto`"});
  }
  if (running == nullptr) return from;
  // Whoever follows the kernel was made when the run began, with capabilities that it has given up since.
  const std::optional<FromKernel>& before = running->from_kernel();
  if (from.has_value() != before.has_value()) {
    return failure(Error{parameters.place("rules"), "whether rules are the kernel's cannot change in a reload",
                         from ? "kernel" : "a file", "a new run"});
  }
  if (from && from->netns != before->netns) {
    return failure(Error{parameters.place("rules"),
                         "the network namespace of `rules: kernel` cannot change in a reload", in_quotes(from->netns),
                         in_quotes(before->netns) + ", or a new run"});
  }
  return from;
}

/// The rules that filter, and those that translate.
struct ReadBoth {
  Read<classify::Ruleset> filters;
  std::optional<Read<classify::Ruleset>> translations{};
};

/// `read`: reads the rules with these options.
template <typename ReadThem>
Result<ReadBoth> read_both(ReadOptions options, const ReadThem& read) {
  auto filters = read(options);
  if (!filters) return failure(std::move(filters).error());
  ReadBoth both{std::move(*filters)};
  if (options.bridges || options.hook.value_or(Hook::forward) == Hook::forward) return both;
  options.translates = true;
  auto translations = read(options);
  if (!translations) return failure(std::move(translations).error());
  both.translations = std::move(*translations);
  return both;
}

/// `from`: gets the digest of the kernel's rules. `running`: whose source reads them; null: they are read here.
Result<ReadBoth> read_kernel_rules(FromKernel& from, const Firewall* running, ReadOptions options) {
  RuleSource* const source = running == nullptr ? nullptr : running->source();
  const Result<std::string> text = source != nullptr ? source->read() : nftables::list_rules_of(from.netns);
  if (!text) return failure(text.error());
  from.digest = nftables::digest_of(*text);
  options.format = RuleFormat::nftables;
  return read_both(std::move(options), [&](const ReadOptions& with) {
    return read_rules(*text, nftables::name_of_kernel_rules(from.netns), with);
  });
}

/// The host's port; kNoPort: it has none.
Result<PortIndex> read_host(const Parameters& parameters, const function::NfContext& context) {
  const std::string hook = parameters.has("hook") ? parameters.text("hook") : "";
  if (!parameters.has("host")) {
    if (hook.empty() || !is_of_host(hook_of(hook))) return kNoPort;
    return failure(Error{parameters.place("hook"), "packets of the host, but no port where it is", in_quotes(hook),
                         "`host: PORT`"});
  }
  const std::string& name = parameters.text("host");
  const auto port = std::ranges::find(context.ports, name);
  if (port == context.ports.end())
    return failure(Error{parameters.place("host"), "unknown port", in_quotes(name), "a port of the chain"});
  if (hook.empty()) return failure(Error{parameters.place("host"), "`host` without `hook`", in_quotes(name), "`hook`"});
  // Whoever follows them does not look at rules that are for the host alone (nftables/digest.h).
  if (parameters.is_word("rules")) {
    return failure(Error{parameters.place("host"), "the host's packets, but the rules are the kernel's as they change",
                         in_quotes(name), "a rule file"});
  }
  if (!context.out_port_known && hook_of(hook) != Hook::prerouting && hook_of(hook) != Hook::output) {
    return failure(Error{parameters.place("host"),
                         fmt::format("hook {} has to know whether packets leave by the host's port", hook), "",
                         "a function that chooses it, such as `router`, before this one"});
  }
  return static_cast<PortIndex>(port - context.ports.begin());
}

/// Whether frames are bridged here, and nothing is asked for that only routed packets have.
Errors check_bridge(const Parameters& parameters, const function::NfContext& context) {
  Errors errors;
  const auto refuse = [&](std::string_view name, std::string message, std::string expected) {
    errors.push_back({parameters.place(name), std::move(message), "", std::move(expected)});
  };
  if (context.out_port_known) {
    refuse("family", "frames are bridged, but an earlier function chooses where packets leave",
           "no `router` before this firewall, or no `family: bridge`");
  }
  if (parameters.is_word("rules"))
    refuse("rules", "bridged frames, but the rules are the kernel's as they change", "a rule file");
  if (parameters.has("hook") && is_of_host(hook_of(parameters.text("hook"))))
    refuse("hook", "only frames of the host itself pass this hook of a bridge", "prerouting, forward or postrouting");
  for (const char* name : {"host", "chain", "ipsets", "match", "connections", "helpers", "port_blocks",
                           "connections_file", "timeouts", "checksum", "tcp_loose", "tcp_be_liberal"}) {
    if (!parameters.has(name)) continue;
    refuse(name, fmt::format("{} is not supported for bridged frames", name), "no `family: bridge`");
  }
  return errors;
}

/// {wan: 1492}
Result<std::vector<std::uint16_t>> read_mtus(const Parameters& parameters, const function::NfContext& context) {
  constexpr std::uint16_t kDefault = 1500, kLeast = 576, kMost = 65535;
  std::vector<std::uint16_t> mtus(context.ports.size(), kDefault);
  if (!parameters.has("mtus")) return mtus;
  Errors errors;
  const std::vector<std::string>& given = parameters.texts("mtus");
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::size_t equals = given[i].find('=');
    const std::string_view name = std::string_view(given[i]).substr(0, equals);
    const std::string_view text = std::string_view(given[i]).substr(equals + 1);
    const auto port = std::ranges::find(context.ports, name);
    const auto value = parse_integer(text);
    if (port == context.ports.end()) {
      errors.push_back({parameters.place("mtus", i), "unknown port", in_quotes(name), "a port of the chain"});
    } else if (!value || *value < kLeast || *value > kMost) {
      errors.push_back({parameters.place("mtus", i), "wrong MTU", in_quotes(text),
                        fmt::format("a number of bytes from {} to {}", kLeast, kMost)});
    } else {
      mtus[static_cast<std::size_t>(port - context.ports.begin())] = static_cast<std::uint16_t>(*value);
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return mtus;
}

bool uses_ipset(const classify::Rule& rule) {
  return rule.text.find("--match-set ") != std::string::npos || rule.text.find("-j SET ") != std::string::npos;
}

/// Whether ports have the addresses that the rules need.
Errors check_addresses(const NatRules& nat, const Parameters& parameters, const function::NfContext& context) {
  using Way = classify::Translation::Way;
  Errors errors;
  const auto uses = [&](Way way) {
    // Other rules of the file are not for this hook.
    return std::ranges::any_of(nat.rules.entries, [&](const classify::Entry& entry) {
      const auto& translation = nat.rules.rules[entry.rule].translation;
      return translation && translation->way == way;
    });
  };
  const auto has_any = [](const function::PortAddresses& of_port) { return of_port.ipv4 || of_port.ipv6; };
  if (uses(Way::masquerade) && !context.out_port_known) {
    errors.push_back({parameters.place("rules"), "masquerade needs the port by which packets leave", "",
                      "a function that chooses it, such as `router`, before this one"});
  }
  if ((uses(Way::masquerade) || uses(Way::redirect)) && std::ranges::none_of(nat.addresses, has_any)) {
    errors.push_back({parameters.place("rules"), "masquerade and redirect need the addresses of interfaces", "",
                      "`addresses: {PORT: ADDRESS}`"});
  }
  return errors;
}

/// Ports to whose address rules translate, and that have none: such packets are dropped.
Errors warn_of_missing_addresses(const NatRules& nat, const Parameters& parameters,
                                 const function::NfContext& context) {
  using Way = classify::Translation::Way;
  const classify::Ruleset& rules = nat.rules;
  std::set<std::pair<PortIndex, std::string_view>> missing;
  for (const classify::Entry& entry : rules.entries) {
    const auto& translation = rules.rules[entry.rule].translation;
    const bool masquerades = translation && translation->way == Way::masquerade;
    if (!masquerades && !(translation && translation->way == Way::redirect)) continue;
    // The ports that its conditions leave.
    const std::size_t count = std::min<std::size_t>(context.ports.size(), 64);
    std::uint64_t ports = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    for (std::uint32_t i = 0; i < entry.condition_count; ++i) {
      const classify::Condition& condition = rules.conditions[entry.first_condition + i];
      const auto which = masquerades ? classify::Subject::out_port : classify::Subject::in_port;
      if (condition.subject != which) continue;
      const std::uint64_t named = std::uint64_t{condition.high} << 32 | condition.low;
      ports &= condition.negated ? ~named : named;
    }
    for (PortIndex port = 0; port < count; ++port) {
      if ((ports >> port & 1) == 0) continue;
      if (masquerades && port < context.ports_write.size() && !context.ports_write[port]) continue;
      const function::PortAddresses of_port =
          port < nat.addresses.size() ? nat.addresses[port] : function::PortAddresses{};
      const bool has4 = of_port.ipv4.has_value(), has6 = of_port.ipv6.has_value();
      const bool has_one = entry.family == NetworkLayer::ipv4   ? has4
                           : entry.family == NetworkLayer::ipv6 ? has6
                                                                : has4 || has6;
      if (!has_one) missing.emplace(port, masquerades ? "masquerade" : "redirect");
    }
  }
  Errors cautions;
  for (const auto& [port, what] : missing) {
    cautions.push_back({parameters.place("rules"),
                        fmt::format("packets {} a port without an address are dropped where rules {}",
                                    what == "masquerade" ? "that leave by" : "that arrive by", what),
                        std::string(context.ports[port]), "its address in `addresses`, or rules for other ports"});
  }
  return cautions;
}

/// By PortIndex, whether packets that arrive there are answered; empty: nowhere. `chosen`: the parameter, if it is
/// given.
std::vector<bool> answering_ports(std::optional<bool> chosen, const function::NfContext& context) {
  if (!chosen.value_or(true)) return {};
  std::vector<bool> ports(context.ports.size());
  bool any = false;
  for (std::size_t port = 0; port < ports.size(); ++port) {
    const bool writes = port >= context.ports_write.size() || context.ports_write[port];
    const bool answers = port < context.ports_answer.size() && context.ports_answer[port];
    ports[port] = writes && (answers || chosen.has_value());
    any |= ports[port];
  }
  if (!any) ports.clear();
  return ports;
}

/// What a chain makes of packets is planned when it begins, so a reload cannot change it.
Answering find_answering(const classify::Ruleset& rules, const Parameters& parameters, const Firewall* running,
                         std::vector<function::PortAddresses> addresses, function::NfContext& context) {
  std::optional<bool> chosen;
  if (parameters.has("answers")) chosen = parameters.flag("answers");
  // At later hooks, an earlier firewall may have translated what is to be quoted.
  const bool may_be_translated =
      parameters.has("hook") && (rules.translates_between() || hook_of(parameters.text("hook")) != Hook::prerouting);
  Answering answering{answering_ports(chosen, context), context.out_port_known || may_be_translated,
                      std::move(addresses)};
  if (chosen.value_or(false) && !rules.rejects())
    context.without_effect.push_back({parameters.place("answers"), "answers has no effect", "", "a rule that rejects"});
  if (running == nullptr) {
    if (!rules.rejects()) answering.ports.clear();
    return answering;
  }
  if (running->answers()) {
    if (answering.ports.empty()) answering.ports.resize(context.ports.size());
    return answering;
  }
  if (!answering.ports.empty() && rules.rejects()) {
    context.cautions.push_back(
        {parameters.place("rules"), "rejected packets are dropped without an answer until a new run", "", ""});
  }
  answering.ports.clear();
  return answering;
}

Result<std::unique_ptr<function::NetworkFunction>> make(const Parameters& parameters, function::NfContext& context) {
  ReadOptions options;
  options.format = rule_format_of(parameters.text("format"));
  if (parameters.has("chain")) options.chain = parameters.text("chain");
  const auto text_or_empty = [&](std::string_view name) -> std::string_view {
    return parameters.has(name) ? std::string_view(parameters.text(name)) : std::string_view();
  };
  const Place place = parameters.has("match") ? parameters.place("match") : Place{};
  if (auto set = set_match(options, text_or_empty("match"), text_or_empty("decides"), place); !set) {
    return failure(std::move(set).error());
  }
  if (parameters.has("policy")) options.policy = target_of(parameters.text("policy"));

  if (parameters.has("hook")) options.hook = hook_of(parameters.text("hook"));
  options.bridges = parameters.text("family") == "bridge";
  const bool bridges = options.bridges;
  if (Errors errors = bridges ? check_bridge(parameters, context) : Errors(); !errors.empty())
    return failure(std::move(errors));
  const auto host = read_host(parameters, context);
  if (!host) return failure(host.error());
  options.host_has_port = *host != kNoPort;
  options.most_rules = parameters.integer("most_rules");
  options.refuses_unsupported = function::refuses_unsupported(parameters);

  static const std::vector<std::string> kNoMapping;
  const bool mapped = parameters.has("interfaces");
  auto interfaces = classify::make_interfaces(context.ports, mapped ? parameters.texts("interfaces") : kNoMapping,
                                              mapped ? parameters.place("interfaces") : Place{},
                                              context.out_port_known || (bridges && !context.exits.empty()));
  if (!interfaces) return failure(std::move(interfaces).error());
  options.interfaces = std::move(*interfaces);

  auto addresses = function::read_port_addresses(parameters, "addresses", context);
  auto mtus = read_mtus(parameters, context);
  if (!addresses) return failure(std::move(addresses).error());
  if (!mtus) return failure(std::move(mtus).error());
  const std::vector<function::PortAddresses> of_ports = *addresses;
  options.host = make_host_addresses(*addresses);
  report::EventLog* const log = context.log(kPacketLog);
  options.logs = log != nullptr;
  if (parameters.has("ipsets")) {
    const std::string& path = parameters.text("ipsets");
    const Result<std::string> text = read_input(path);
    if (!text) return failure(text.error());
    auto sets = read_ipsets(*text, input_name(path), options.most_rules);
    if (!sets) return failure(std::move(sets).error());
    options.ipsets = std::make_shared<const Ipsets>(std::move(*sets));
  }

  const auto* const running = static_cast<const Firewall*>(context.running);
  auto from = read_from_kernel(parameters, running);
  if (!from) return failure(std::move(from).error());
  const std::optional<Hook> hook = options.hook;
  auto both = *from ? read_kernel_rules(**from, running, std::move(options))
                    : read_both(std::move(options), [&](const ReadOptions& with) {
                        return read_rule_file(parameters.text("rules"), with);
                      });
  if (!both) return failure(std::move(both).error());
  Read<classify::Ruleset>* const read = &both->filters;
  std::optional<NatRules> nat;
  if (both->translations) {
    append(read->unsupported, std::move(both->translations->unsupported));
    append(read->harmless, std::move(both->translations->harmless));
    read->value.interface_names.merge(both->translations->value.interface_names);
    nat = NatRules{*hook, std::move(both->translations->value), std::move(*addresses)};
    if (Errors errors = check_addresses(*nat, parameters, context); !errors.empty()) return failure(std::move(errors));
    append(context.cautions, warn_of_missing_addresses(*nat, parameters, context));
  }
  if (auto checked = function::check_unsupported(parameters, "rules", std::move(read->unsupported),
                                                 std::move(read->harmless), context);
      !checked)
    return failure(std::move(checked).error());
  if (!nat) append(context.cautions, cautions(read->value, parameters));
  const bool translates_destinations =
      hook == Hook::output ? (read->value.translates_at & bit_of(Hook::output)) != 0
                           : hook == Hook::prerouting && (read->value.translates_at & ~bit_of(Hook::output)) != 0;
  if (nat && translates_destinations && context.out_port_known) {
    context.cautions.push_back({parameters.place("hook"),
                                "destinations are translated after the function that chooses where packets leave", "",
                                "this firewall before it, such as before `router`"});
  }
  const auto warn_without_effect = [&](const char* name, bool has_effect, const char* expected) {
    if (has_effect || !parameters.has(name)) return;
    context.without_effect.push_back({parameters.place(name), fmt::format("{} has no effect", name), "", expected});
  };
  const auto any_step = [&](const auto& is_one) {
    const auto any = [&](const classify::Ruleset& rules) {
      return std::ranges::any_of(rules.rules,
                                 [&](const classify::Rule& rule) { return std::ranges::any_of(rule.steps, is_one); });
    };
    return any(read->value) || (nat && any(nat->rules));
  };
  warn_without_effect("mtus", any_step([](const classify::Step& step) {
                        const auto* const clamp = std::get_if<classify::ClampSegmentSize>(&step);
                        return clamp != nullptr && clamp->most == 0;
                      }),
                      "a rule that clamps segment sizes to the path MTU");
  // Those of rules at other hooks are not known.
  if (!hook) warn_without_effect("ipsets", std::ranges::any_of(read->value.rules, &uses_ipset), "a rule with a set");
  if (!hook)
    append(context.without_effect, function::unused_interfaces(parameters, read->value.interface_names, "rule"));
  auto tracking = tracking_options(parameters);
  if (!tracking) return failure(std::move(tracking).error());
  const bool gives_helpers = read->value.gives_helpers || (nat && nat->rules.gives_helpers);
  tracking->ftp.offered |= gives_helpers;
  if (tracking->port_blocks && tracking->ftp.offered) {
    return failure(Error{parameters.place("port_blocks"),
                         "port blocks and helpers: ports of connections that a helper expects are in no block", "",
                         "one of them"});
  }
  if (tracking->port_blocks && nat && *hook == Hook::postrouting) {
    if (Errors errors = check_port_blocks(nat->rules, parameters); !errors.empty()) return failure(std::move(errors));
  }
  const bool in_any_case = parameters.has("connections") || parameters.has("helpers") || gives_helpers || nat ||
                           (running != nullptr && running->tracks());
  const bool tracks = read->value.tests_connections() || in_any_case;
  for (const char* name : {"timeouts", "checksum", "tcp_loose", "tcp_be_liberal", "connections_file", "port_blocks"})
    warn_without_effect(name, tracks, "a rule that tests connections, or `connections`");
  const std::string& engine = parameters.text("engine");
  warn_without_effect("engine", !bridges || engine == "bitvector",
                      "no `family: bridge`: rules about frames are looked through one after the other");
  const bool live =
      !context.ports_live.empty() && std::ranges::find(context.ports_live, false) == context.ports_live.end();
  Firewall::Setup setup{.tracking = *tracking,
                        .tracks_in_any_case = in_any_case,
                        .clock = live ? conntrack::Clock::system : conntrack::Clock::packets,
                        .connections_file = std::string(text_or_empty("connections_file")),
                        .answering = find_answering(read->value, parameters, running, of_ports, context),
                        .from = std::move(*from),
                        .nat = std::move(nat),
                        .log = log,
                        .nat_log = context.log(kNatLog),
                        .shared = context.shared,
                        .port_names = {context.ports.begin(), context.ports.end()},
                        .largest_packets = std::move(*mtus),
                        .hook = hook,
                        .host = *host,
                        .link_is_written = context.out_port_known,
                        .bridge = bridges ? std::optional(Bridge{context.exits}) : std::nullopt,
                        .place = parameters.place("rules")};
  return Firewall::build(std::move(read->value), classify::engine_of(engine), std::move(setup))
      .map([](std::unique_ptr<Firewall> firewall) {
        return std::unique_ptr<function::NetworkFunction>(std::move(firewall));
      });
}

}  // namespace

const function::NfKind& firewall_kind() {
  static constexpr function::OutputKind kOutputs[] = {
      {kPacketLog, "packets that rules log", "packets that rules of a firewall log, a line each, as Linux logs them"},
      {kNatLog, "which host has which ports",
       "the port blocks that a firewall gives to hosts and takes back, a line each"}};
  static constexpr function::NfKind kKind{"firewall", "filters packets by rules; the first or the last match decides",
                                          kParameters, &make, kOutputs};
  return kKind;
}

}  // namespace penstock::firewall
