// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/rule_pairs.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string_view>
#include <unordered_map>

namespace penstock::firewall {

namespace {

/// The text of a rule without the handle that nft gives it: in a new version of a rule set, it may be another.
std::string_view without_handle(std::string_view text) {
  constexpr std::string_view kBeforeHandle = " # handle ";
  const std::size_t at = text.rfind(kBeforeHandle);
  if (at == std::string_view::npos) return text;
  const bool is_handle = text.find_first_not_of("0123456789", at + kBeforeHandle.size()) == std::string_view::npos;
  return is_handle ? text.substr(0, at) : text;
}

/// What distinguishes rules. The text of a rule does not show its address family, nor the target in ClassBench sets.
struct RuleKey {
  std::string_view text;
  unsigned attributes = 0;  // target, families of its entries, and whether it is left out
  friend bool operator==(const RuleKey&, const RuleKey&) = default;
};

struct HashOfKey {
  std::size_t operator()(const RuleKey& key) const noexcept {
    return std::hash<std::string_view>{}(key.text) * 31 + key.attributes;
  }
};

std::vector<RuleKey> keys_of(const classify::Ruleset& rules) {
  constexpr unsigned kLeftOut = 1U << 2, kIpv4 = 1U << 3, kIpv6 = 1U << 4;  // beside the target
  std::vector<RuleKey> keys;
  keys.reserve(rules.rules.size());
  for (const classify::Rule& rule : rules.rules)
    keys.push_back({without_handle(rule.text), static_cast<unsigned>(rule.target) | (rule.left_out ? kLeftOut : 0)});
  for (const classify::Entry& entry : rules.entries) {
    unsigned& attributes = keys[entry.rule].attributes;
    if (entry.family != NetworkLayer::ipv6) attributes |= kIpv4;
    if (entry.family != NetworkLayer::ipv4) attributes |= kIpv6;
  }
  return keys;
}

}  // namespace

std::vector<std::uint32_t> pair_rules(const classify::Ruleset& before, const classify::Ruleset& now) {
  struct Occurrences {
    std::uint32_t first = kNoRule;  // not paired yet; others follow by `next`
    std::uint32_t last = kNoRule;
  };
  const std::vector<RuleKey> known = keys_of(before);
  std::unordered_map<RuleKey, Occurrences, HashOfKey> by_key;
  by_key.reserve(known.size());
  std::vector<std::uint32_t> next(known.size(), kNoRule);
  for (std::uint32_t rule = 0; rule < known.size(); ++rule) {
    Occurrences& there = by_key[known[rule]];
    (there.first == kNoRule ? there.first : next[there.last]) = rule;
    there.last = rule;
  }
  std::vector<std::uint32_t> pairs;
  pairs.reserve(now.rules.size());
  for (const RuleKey& key : keys_of(now)) {
    const auto found = by_key.find(key);
    pairs.push_back(found == by_key.end() ? kNoRule : found->second.first);
    if (pairs.back() != kNoRule) found->second.first = next[pairs.back()];
  }
  return pairs;
}

namespace {

/// Without what changes by itself (the elements of sets, and what is used of quotas), and without names.
classify::StepObjects definitions_of(const classify::StepObjects& objects) {
  classify::StepObjects definitions = objects;
  for (classify::ChangingSet& set : definitions.sets) set.elements.clear();
  for (classify::QuotaObject& object : definitions.quotas) object.quota.used = 0;
  const auto clear_names = [](auto& all) {
    for (auto& one : all) one.name.clear();
  };
  clear_names(definitions.rates);
  clear_names(definitions.quotas);
  clear_names(definitions.counts);
  clear_names(definitions.turns);
  clear_names(definitions.recents);
  clear_names(definitions.sets);
  return definitions;
}

bool same_steps(const classify::Ruleset& before, const classify::Ruleset& now) {
  return std::ranges::equal(before.rules, now.rules,
                            [](const classify::Rule& a, const classify::Rule& b) { return a.steps == b.steps; }) &&
         definitions_of(before.objects) == definitions_of(now.objects);
}

}  // namespace

bool same_meaning(const classify::Ruleset& before, const classify::Ruleset& now) {
  const auto same_entry = [](const classify::Entry& a, const classify::Entry& b) {
    return a.first_condition == b.first_condition && a.condition_count == b.condition_count && a.family == b.family &&
           a.action == b.action && a.rule == b.rule && a.skip_to == b.skip_to;
  };
  const auto same_ports = [](const classify::PortRange& a, const classify::PortRange& b) {
    return a.low == b.low && a.high == b.high;
  };
  const auto same_range = [](const classify::Ipv6Range& a, const classify::Ipv6Range& b) {
    return a.low == b.low && a.high == b.high;
  };
  return before.ipv4_policy == now.ipv4_policy && before.ipv6_policy == now.ipv6_policy && same_steps(before, now) &&
         before.conditions == now.conditions && std::ranges::equal(before.entries, now.entries, same_entry) &&
         std::ranges::equal(before.port_ranges, now.port_ranges, same_ports) &&
         std::ranges::equal(before.ranges6, now.ranges6, same_range);
}

}  // namespace penstock::firewall
