// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The parameters of `firewall`, and how it is built from them.

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "function/interface_names.h"
#include "function/unsupported.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/rule_reader.h"

namespace penstock::firewall {

namespace {

constexpr auto kParameters = std::to_array<Parameter>({
    {"rules", ParameterType::path, "", "",
     "output of iptables-save, ip6tables-save or `nft -j list ruleset`, a file of nft, or a ClassBench filter set", true},
    {"format", ParameterType::choice, "auto", "auto|classbench|iptables|ip6tables|nftables|nft", "format of the rules",
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
    function::kUnsupportedParameter,
});

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
            "rules in the chain where packets start");
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

  options.most_rules = parameters.integer("most_rules");
  options.refuses_unsupported = function::refuses_unsupported(parameters);

  static const std::vector<std::string> kNoMapping;
  const bool mapped = parameters.has("interfaces");
  auto interfaces =
      classify::make_interfaces(context.ports, mapped ? parameters.texts("interfaces") : kNoMapping,
                                mapped ? parameters.place("interfaces") : Place{}, context.out_port_known);
  if (!interfaces) return failure(std::move(interfaces).error());
  options.interfaces = std::move(*interfaces);

  Result<Read<classify::Ruleset>> read = read_rule_file(parameters.text("rules"), std::move(options));
  if (!read) return failure(std::move(read).error());
  if (auto checked = function::check_unsupported(parameters, "rules", std::move(read->unsupported),
                                                 std::move(read->harmless), context);
      !checked)
    return failure(std::move(checked).error());
  append(context.cautions, cautions(read->value, parameters));
  append(context.without_effect, function::unused_interfaces(parameters, read->value.interface_names, "rule"));
  return Firewall::build(std::move(read->value), classify::engine_of(parameters.text("engine")))
      .map([](std::unique_ptr<Firewall> firewall) {
        return std::unique_ptr<function::NetworkFunction>(std::move(firewall));
      });
}

}  // namespace

const function::NfKind& firewall_kind() {
  static constexpr function::NfKind kKind{"firewall", "filters packets by rules; the first or the last match decides",
                                          kParameters, &make};
  return kKind;
}

}  // namespace penstock::firewall
