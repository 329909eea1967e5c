// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/table_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "function/changes.h"
#include "nf/ipsec/sa/addresses.h"
#include "nf/ipsec/selection/selection_core.h"
#include "nf/ipsec/tables.h"

namespace penstock::ipsec {

namespace {

auto name_of(const SecurityAssociation& sa) {
  const Ipv6Address destination = table_address(sa.destination);
  return std::tuple(is_ipv6(sa.destination), destination.high, destination.low, sa.spi);
}

/// The SA without what changes while it carries packets, and without its place.
SecurityAssociation definition_of(const SecurityAssociation& sa) {
  SecurityAssociation definition = sa;
  definition.line = 0;
  definition.sequence = {};
  definition.lifetimes = {sa.lifetimes.soft, sa.lifetimes.hard, 0, 0, sa.lifetimes.added, {}};
  return definition;
}

struct Change {
  function::Changes::Counts counts;
  bool reordered = false;  // nothing else

  /// "2 SAs added, 1 removed"
  [[nodiscard]] std::string text(std::string_view one, std::string_view several) const {
    const function::Changes counted = function::Changes().count(one, counts, several);
    if (counted.empty()) return reordered ? fmt::format("{} in another order", several) : "";
    return counted.text();
  }
};

Change change_of_sas(const Tables& before, const Tables& after) {
  Change change;
  const std::vector<std::uint32_t> found = find_sas(after, before);
  std::size_t stayed = 0;
  std::uint32_t last = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == kNoSa) {
      ++change.counts.added;
      continue;
    }
    ++stayed;
    if (definition_of(after.sas()[i]) != definition_of(before.sas()[found[i]])) ++change.counts.changed;
    change.reordered |= found[i] < last;
    last = found[i];
  }
  change.counts.removed = before.sas().size() - stayed;
  return change;
}

Change change_of_policies(const Tables& before, const Tables& after) {
  Change change;
  std::vector<std::uint64_t> old = before.policy_hashes();
  std::vector<std::uint64_t> now = after.policy_hashes();
  change.reordered = old != now;
  std::ranges::sort(old);
  std::ranges::sort(now);
  std::vector<std::uint64_t> difference;
  std::ranges::set_difference(now, old, std::back_inserter(difference));
  change.counts.added = difference.size();
  difference.clear();
  std::ranges::set_difference(old, now, std::back_inserter(difference));
  change.counts.removed = difference.size();
  return change;
}

}  // namespace

std::vector<std::uint32_t> find_sas(const Tables& tables, const Tables& others) {
  std::map<decltype(name_of(others.sas().front())), std::uint32_t> by_name;
  for (std::uint32_t i = 0; i < others.sas().size(); ++i) by_name.emplace(name_of(others.sas()[i]), i);
  std::vector<std::uint32_t> found;
  found.reserve(tables.sas().size());
  for (const SecurityAssociation& sa : tables.sas()) {
    const auto other = by_name.find(name_of(sa));
    found.push_back(other == by_name.end() ? kNoSa : other->second);
  }
  return found;
}

std::uint64_t hash_of(const Policy& policy) {
  const auto number = [](const std::optional<std::uint16_t>& value) { return value ? int{*value} : -1; };
  const Selector& selector = policy.selector;
  std::string text =
      fmt::format("{} {} {} {} {} {} {} {} {} {}", static_cast<int>(policy.direction), static_cast<int>(policy.action),
                  policy.priority, policy.icmp, to_string(selector.source), to_string(selector.destination),
                  selector.protocol, number(selector.source_port), number(selector.destination_port), selector.device);
  for (const Template& wanted : policy.templates) {
    text += fmt::format("\n{} {} {} {} {} {}", to_string(wanted.source), to_string(wanted.destination), wanted.spi,
                        wanted.reqid, static_cast<int>(wanted.mode), wanted.optional);
  }
  return std::hash<std::string>{}(text);
}

std::string changes(const Tables& before, const Tables& after) {
  std::vector<std::string> parts{change_of_sas(before, after).text("SA", "SAs"),
                                 change_of_policies(before, after).text("policy", "policies")};
  const Settings& old = before.settings();
  const Settings& now = after.settings();
  if (before.has_policies() != after.has_policies()) {
    parts.emplace_back(after.has_policies() ? "policies apply" : "no policies: what an SA may carry is accepted");
  }
  if (old.drops_unselected != now.drops_unselected) {
    parts.push_back(fmt::format("unselected: {}", now.drops_unselected ? "drop" : "pass"));
  }
  if (old.mtu != now.mtu) parts.push_back(fmt::format("mtu: {}", now.mtu));
  if (before.interfaces().aliases != after.interfaces().aliases) parts.emplace_back("interfaces");
  std::erase(parts, "");
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace penstock::ipsec
