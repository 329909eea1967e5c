// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/filter/template_rules.h"

#include <random>
#include <span>

namespace penstock::experiments {
namespace {

using classify::Condition;
using classify::Subject;
using Rule = WordRule<kKeyWords>;

constexpr unsigned kPortsShift = 16;  // of the destination port in its word
constexpr std::uint32_t kTcp = std::uint32_t{ip_protocol::kTcp} << classify::kKindDetailBits;

struct Template {
  std::uint32_t source;
  unsigned source_bits;
  std::uint32_t destination;
  unsigned destination_bits;
  bool tcp;
  std::uint32_t port;  // 0: any
  bool fixed_port;     // the protocol's own
};

constexpr std::uint32_t address(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}

constexpr Template kTable[] = {
    {address(140, 128, 1, 0), 24, 0, 0, false, 0, false},
    {0, 0, address(140, 128, 2, 99), 24, true, 8888, false},
    {address(140, 127, 0, 0), 16, address(123, 6, 0, 0), 16, false, 0, false},
    {address(219, 88, 0, 0), 16, address(123, 6, 22, 0), 24, true, 21, true},
};
constexpr Template kText[] = {
    {address(140, 128, 1, 0), 24, 0, 0, false, 0, false},
    {address(140, 127, 0, 0), 16, address(123, 6, 0, 0), 16, false, 0, false},
    {address(219, 88, 0, 0), 16, address(123, 6, 22, 0), 24, false, 0, false},
};

Rule rule_of(const Template& from, bool as_printed, std::mt19937_64& random) {
  const std::uint64_t addresses = random();
  const std::uint64_t port = 1024 + random() % (65536 - 1024);
  Rule rule;
  const auto put = [&](unsigned field, std::uint32_t mask, std::uint64_t value) {
    rule.fields[field] = {mask, static_cast<std::uint32_t>(value) & mask};
  };
  put(0, ipv4_mask(from.source_bits), as_printed ? from.source : addresses);
  put(1, ipv4_mask(from.destination_bits), as_printed ? from.destination : addresses >> 32);
  const std::uint64_t chosen = as_printed || from.fixed_port ? from.port : port;
  put(2, from.port != 0 ? 0xffffU << kPortsShift : 0, chosen << kPortsShift);
  put(3, from.tcp ? 0xffU << classify::kKindDetailBits : 0, kTcp);
  return rule;
}

}  // namespace

Reading reading_of(std::string_view name) { return name == "text" ? Reading::text : Reading::table; }

std::vector<Rule> template_rules(Reading reading, std::size_t count) {
  const std::span<const Template> templates = reading == Reading::table ? std::span<const Template>(kTable) : kText;
  std::mt19937_64 random(2);
  std::vector<Rule> rules;
  for (std::size_t i = 0; i < count; ++i) {
    rules.push_back(rule_of(templates[i % templates.size()], i < templates.size(), random));
  }
  return rules;
}

std::vector<WordRule<2>> without_ports(const std::vector<Rule>& rules) {
  std::vector<WordRule<2>> shorter;
  for (const Rule& rule : rules) {
    WordRule<2>& kept = shorter.emplace_back();
    for (unsigned i = 0; i < 2; ++i) kept.fields[i] = {rule.fields[i].mask, rule.fields[i].value};
  }
  return shorter;
}

classify::Ruleset ruleset_of(const std::vector<Rule>& rules, Deciding deciding) {
  classify::Ruleset set;
  set.file = "rules of table 2";
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const Rule& rule = rules[deciding == Deciding::first ? i : rules.size() - 1 - i];
    std::vector<Condition> conditions;
    for (unsigned f = 0; f < 2; ++f) {
      const auto& field = rule.fields[f];
      if (field.mask == 0) continue;
      conditions.push_back(classify::ipv4_condition(f == 0 ? Subject::source4 : Subject::destination4, {field.value},
                                                    {field.value | ~field.mask}, false));
    }
    if (rule.fields[2].mask != 0) {
      const auto port = static_cast<std::uint16_t>(rule.fields[2].value >> kPortsShift);
      conditions.push_back(classify::port_condition(set, Subject::destination_port, {{port, port}}, false));
    }
    if (rule.fields[3].mask != 0) conditions.push_back(classify::protocol_condition(ip_protocol::kTcp, 0xff, false));
    classify::Rule& text = set.rules.emplace_back();
    text.line = static_cast<std::uint32_t>(i + 1);
    text.target = classify::Target::drop;
    classify::Entry entry;
    entry.family = NetworkLayer::ipv4;
    entry.action = classify::Action::drop;
    entry.rule = static_cast<std::uint32_t>(i);
    classify::add_entry(set, conditions, entry);
  }
  return set;
}

}  // namespace penstock::experiments
