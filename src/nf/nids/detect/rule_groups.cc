// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/rule_groups.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace penstock::nids {

namespace {

using RuleList = std::vector<std::uint32_t>;

constexpr std::size_t kPorts = 65'536;

/// Ports with much traffic, which get groups of their own even if few rules name them (Suricata's whitelists).
constexpr std::array<std::uint16_t, 14> kBusyPorts{21, 22, 25, 53, 80, 110, 139, 143, 443, 445, 1433, 3306, 3389, 8080};

bool in_group(const CompiledRule& rule, ProtocolClass protocol, stack::Direction direction) {
  return rule.type != RuleType::ip_only && (rule.protocols & bit_of(protocol)) != 0 &&
         (rule.directions & bit_of(direction)) != 0;
}

/// The server-side ports, which determine the group. A bidirectional rule may have them on either side.
std::vector<const PortSet*> server_ports(const Rule& rule, stack::Direction direction) {
  if (rule.direction == RuleDirection::both_ways) return {&rule.source_ports, &rule.destination_ports};
  return {direction == stack::Direction::to_server ? &rule.destination_ports : &rule.source_ports};
}

RuleList sorted_once(RuleList rules) {
  std::sort(rules.begin(), rules.end());
  rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
  return rules;
}

struct Slice {  // ports with the same rules
  std::uint32_t first, last;
  std::uint32_t set;  // index of the rule set
};

struct Slices {
  std::vector<Slice> slices;
  std::vector<RuleList> sets;
};

/// Divides the ports where a rule begins or ends.
Slices slice(const std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>>& ranges,
             const GroupLimits& limits) {
  std::vector<std::tuple<std::uint32_t, bool, std::uint32_t>> edges;  // port, whether a range begins, rule
  for (const auto& [first, last, rule] : ranges) {
    edges.emplace_back(first, true, rule);
    edges.emplace_back(last + 1, false, rule);
  }
  std::sort(edges.begin(), edges.end());
  Slices result;
  std::map<RuleList, std::uint32_t> known;
  std::map<std::uint32_t, unsigned> active;  // how often: the port may be on both sides of a rule
  std::uint32_t from = 0;
  std::size_t kept = 0;
  std::size_t sliced = 0;
  std::optional<RuleList> shared;  // rules of all slices from here on
  const auto close = [&](std::uint32_t until) {
    if (until == from) return;
    std::uint32_t set = 0;
    if (!shared) {
      RuleList rules;
      rules.reserve(active.size());
      for (const auto& [rule, times] : active) rules.push_back(rule);
      sliced += rules.size();
      if (sliced > limits.sliced || kept + rules.size() > limits.kept) {
        shared = std::move(rules);
      } else {
        const auto [place, is_new] =
            known.try_emplace(std::move(rules), static_cast<std::uint32_t>(result.sets.size()));
        set = place->second;
        if (is_new) {
          result.sets.push_back(place->first);
          kept += place->first.size();
        }
      }
    }
    if (shared) set = static_cast<std::uint32_t>(result.sets.size());
    result.slices.push_back({from, until - 1, set});
    from = until;
  };
  for (const auto& [port, begins, rule] : edges) {
    close(port);
    if (begins) {
      ++active[rule];
      if (shared) shared->push_back(rule);
    } else if (--active[rule] == 0) {
      active.erase(rule);
    }
  }
  close(kPorts);
  if (shared) result.sets.push_back(sorted_once(std::move(*shared)));
  return result;
}

/// The sets that should have groups of their own, the most valuable first.
std::vector<std::uint32_t> by_worth(const Slices& slices) {
  struct Worth {
    bool busy = false;
    std::size_t ports = 0;
  };
  std::vector<Worth> worth(slices.sets.size());
  for (const Slice& slice : slices.slices) {
    worth[slice.set].ports += slice.last - slice.first + 1;
    for (const std::uint16_t port : kBusyPorts) {
      if (port >= slice.first && port <= slice.last) worth[slice.set].busy = true;
    }
  }
  std::vector<std::uint32_t> order(slices.sets.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const auto rank = [&](std::uint32_t set) {
      return std::tuple(!slices.sets[set].empty(), !worth[set].busy, kPorts - worth[set].ports, set);
    };
    return rank(a) < rank(b);
  });
  return order;
}

RuleList united(const RuleList& a, const RuleList& b) {
  RuleList both;
  both.reserve(a.size() + b.size());
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

}  // namespace

RuleGroups::RuleGroups(std::span<const CompiledRule> rules, const GroupLimits& limits) {
  for (const stack::Direction direction : {stack::Direction::to_server, stack::Direction::to_client}) {
    const auto way = static_cast<std::size_t>(direction);
    for (std::size_t i = 0; i < kProtocolClasses; ++i) {
      const auto protocol = static_cast<ProtocolClass>(i);
      if (protocol <= ProtocolClass::udp) {
        by_port_[i][way] = group_by_port(rules, protocol, direction, limits);
        continue;
      }
      RuleList all;
      for (std::uint32_t place = 0; place < rules.size(); ++place) {
        if (in_group(rules[place], protocol, direction)) all.push_back(place);
      }
      whole_[i][way] = group(std::move(all), false);
    }
  }
}

std::uint16_t RuleGroups::group(std::vector<std::uint32_t> rules, bool of_tcp) {
  if (rules.empty()) return 0;
  for (std::size_t i = 1; i < groups_.size(); ++i) {
    if (of_tcp_[i] == of_tcp && groups_[i] == rules) return static_cast<std::uint16_t>(i);
  }
  groups_.push_back(std::move(rules));
  of_tcp_.push_back(of_tcp);
  return static_cast<std::uint16_t>(groups_.size() - 1);
}

RuleGroups::Ports RuleGroups::group_by_port(std::span<const CompiledRule> rules, ProtocolClass protocol,
                                            stack::Direction direction, const GroupLimits& limits) {
  const bool of_tcp = protocol == ProtocolClass::tcp;
  RuleList of_any_port;
  std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> ranges;
  for (std::uint32_t place = 0; place < rules.size(); ++place) {
    if (!in_group(rules[place], protocol, direction)) continue;
    const std::vector<const PortSet*> ports = server_ports(*rules[place].rule, direction);
    if (std::any_of(ports.begin(), ports.end(), [](const PortSet* set) { return set->is_any(); })) {
      of_any_port.push_back(place);
      continue;
    }
    for (const PortSet* const set : ports) {
      for (const PortSet::Range& range : set->ranges) ranges.emplace_back(range.first, range.last, place);
    }
  }
  const Slices slices = slice(ranges, limits);

  // Rules for all ports are in every group, and limit how many groups fit.
  const std::size_t share = limits.rules / 4;
  std::vector<std::uint16_t> group_of_set(slices.sets.size(), 0);
  RuleList joined;
  std::vector<std::uint32_t> into_joined;
  std::size_t groups = 0;
  std::size_t used = 0;
  for (const std::uint32_t set : by_worth(slices)) {
    const std::size_t size = of_any_port.size() + slices.sets[set].size();
    if (groups > 0 && (groups + 1 >= limits.groups || used + size > share)) {
      joined.insert(joined.end(), slices.sets[set].begin(), slices.sets[set].end());
      into_joined.push_back(set);
      continue;
    }
    group_of_set[set] = group(united(of_any_port, slices.sets[set]), of_tcp);
    ++groups;
    used += size;
  }
  if (!into_joined.empty()) {
    const std::uint16_t group_of_joined = group(united(of_any_port, sorted_once(std::move(joined))), of_tcp);
    for (const std::uint32_t set : into_joined) group_of_set[set] = group_of_joined;
  }

  Ports by_port(kPorts, 0);
  for (const Slice& slice : slices.slices) {
    std::fill(by_port.begin() + slice.first, by_port.begin() + slice.last + 1, group_of_set[slice.set]);
  }
  return by_port;
}

}  // namespace penstock::nids
