// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/ip_only.h"

#include <tuple>
#include <type_traits>
#include <utility>

namespace penstock::nids {

namespace {

/// A rule with a wider range would be in every slice that other rules cut from it; such rules are tested every time
/// instead.
constexpr std::uint64_t kWide = std::uint64_t{1} << 16;

template <typename Address>
const std::vector<AddressSet::Range<Address>>& ranges_of(const AddressSet& set) {
  if constexpr (std::is_same_v<Address, Ipv4Address>) {
    return set.v4;
  } else {
    return set.v6;
  }
}

/// Advances to the next address; false if there is none.
bool next(Ipv4Address& address) noexcept { return ++address.bits != 0; }
bool next(Ipv6Address& address) noexcept { return ++address.low != 0 || ++address.high != 0; }

}  // namespace

template <typename Address>
std::optional<IpOnlyRules::Index<Address>> IpOnlyRules::index(std::span<const CompiledRule> rules,
                                                              std::span<const std::uint32_t> places,
                                                              AddressSet Rule::*side, std::size_t most_indexed) {
  std::vector<std::tuple<Address, bool, std::uint32_t>> edges;  // position, whether a range begins, rule
  for (const std::uint32_t place : places) {
    for (const AddressSet::Range<Address>& range : ranges_of<Address>(rules[place].rule->*side)) {
      edges.emplace_back(range.first, true, place);
      Address after = range.last;
      if (next(after)) edges.emplace_back(after, false, place);
    }
  }
  std::sort(edges.begin(), edges.end());

  Index<Address> index;
  std::vector<std::uint32_t> active;
  for (std::size_t i = 0; i < edges.size();) {
    const Address here = std::get<0>(edges[i]);
    for (; i < edges.size() && std::get<0>(edges[i]) == here; ++i) {
      const auto [address, begins, place] = edges[i];
      const auto at = std::lower_bound(active.begin(), active.end(), place);
      // Ranges of one set do not touch, so none begins where another of the same rule ends.
      if (begins) {
        active.insert(at, place);
      } else {
        active.erase(at);
      }
    }
    index.from.push_back(here);
    index.starts.push_back(static_cast<std::uint32_t>(index.rules.size()));
    index.rules.insert(index.rules.end(), active.begin(), active.end());
    if (index.rules.size() > most_indexed) return std::nullopt;
  }
  index.starts.push_back(static_cast<std::uint32_t>(index.rules.size()));
  return index;
}

IpOnlyRules::IpOnlyRules(std::span<const CompiledRule> rules, std::size_t most_indexed) {
  const auto narrow = [](const AddressSet& set) {
    return std::all_of(set.v4.begin(), set.v4.end(),
                       [](const auto& range) { return range.last.bits - range.first.bits < kWide; }) &&
           std::all_of(set.v6.begin(), set.v6.end(),
                       [](const auto& range) { return range.last.high - range.first.high < kWide; });
  };
  std::vector<std::uint32_t> by_source, by_destination;
  for (std::uint32_t place = 0; place < rules.size(); ++place) {
    if (rules[place].type != RuleType::ip_only) continue;
    empty_ = false;
    const Rule& rule = *rules[place].rule;
    if (rule.direction == RuleDirection::one_way && narrow(rule.source)) {
      by_source.push_back(place);
    } else if (rule.direction == RuleDirection::one_way && narrow(rule.destination)) {
      by_destination.push_back(place);
    } else {
      unindexed_.push_back(place);
    }
  }
  const auto add = [&](Index<Ipv4Address>& v4, Index<Ipv6Address>& v6, const std::vector<std::uint32_t>& places,
                       AddressSet Rule::*side) {
    auto made_v4 = index<Ipv4Address>(rules, places, side, most_indexed);
    auto made_v6 = index<Ipv6Address>(rules, places, side, most_indexed);
    if (made_v4 && made_v6) {
      v4 = std::move(*made_v4);
      v6 = std::move(*made_v6);
    } else {
      unindexed_.insert(unindexed_.end(), places.begin(), places.end());
    }
  };
  add(by_source_v4_, by_source_v6_, by_source, &Rule::source);
  add(by_destination_v4_, by_destination_v6_, by_destination, &Rule::destination);
  std::sort(unindexed_.begin(), unindexed_.end());
}

}  // namespace penstock::nids
