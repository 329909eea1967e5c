// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The firewall's parameters, and the firewall made from them.

#include <array>
#include <utility>

#include "base/text_file.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/rule_reader.h"

namespace penstock::firewall {

namespace {

constexpr auto kParameters = std::to_array<Parameter>({
    {"rules", ParameterType::path, "", "", "output of iptables-save or ip6tables-save, or a ClassBench filter set",
     true},
    {"format", ParameterType::choice, "auto", "auto|classbench|iptables|ip6tables", "format of the rules", false},
    {"chain", ParameterType::text, "", "",
     "iptables: the chain of the filter table where packets start, instead of FORWARD", false},
    {"policy", ParameterType::choice, "", "accept|drop|reject",
     "verdict if no rule matches, instead of the chain's policy; default for ClassBench: drop", false},
    {"match", ParameterType::choice, "", "accept|drop|reject", "ClassBench: verdict of its rules, instead of accept",
     false},
    {"engine", ParameterType::choice, "bitvector", "bitvector|linear", "search method", false},
    {"interfaces", ParameterType::pairs, "", "",
     "interfaces in the rules and the ports they are: {eth0: lan, lo: none}", false},
    {"most_rules", ParameterType::integer, "1000000", "1..100000000",
     "maximum number of rules, in the file and after chains are expanded where they are called", false},
    {"strict", ParameterType::flag, "false", "", "what the rules hold and is not supported is an error", false},
});

Result<std::unique_ptr<chain::NetworkFunction>> make(const Parameters& parameters, chain::NfContext& context) {
  ReadOptions options;
  options.format = rule_format_of(parameters.text("format"));
  if (parameters.has("chain")) options.chain = parameters.text("chain");
  if (parameters.has("match")) options.match = target_of(parameters.text("match"));
  if (parameters.has("policy")) options.policy = target_of(parameters.text("policy"));

  options.most_rules = parameters.integer("most_rules");

  static const std::vector<std::string> kNoMapping;
  const bool mapped = parameters.has("interfaces");
  auto interfaces = make_interfaces(context.ports, mapped ? parameters.texts("interfaces") : kNoMapping,
                                    mapped ? parameters.place("interfaces") : Place{}, context.out_port_known);
  if (!interfaces) return failure(std::move(interfaces).error());
  options.interfaces = std::move(*interfaces);

  const std::string& file = parameters.text("rules");
  const Result<std::string> text = read_lines(file);
  if (!text) return failure(text.error());
  Result<Read<Ruleset>> read = read_rules(*text, input_name(file), options);
  if (!read) return failure(std::move(read).error());
  if (parameters.flag("strict") && !read->unsupported.empty()) return failure(std::move(read->unsupported));
  append(context.unsupported, std::move(read->unsupported));
  return Firewall::build(std::move(read->value), engine_of(parameters.text("engine")))
      .map([](std::unique_ptr<Firewall> firewall) {
        return std::unique_ptr<chain::NetworkFunction>(std::move(firewall));
      });
}

}  // namespace

const chain::NfKind& firewall_kind() {
  static constexpr chain::NfKind kKind{"firewall", "lets packets through by rules, the first match deciding",
                                       kParameters, &make};
  return kKind;
}

}  // namespace penstock::firewall
