// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// An index of rules that test only addresses, by source or destination address: reputation lists have thousands of
// them, and every new flow is looked up.

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nf/nids/detect/compiled_rule.h"

namespace penstock::nids {

class IpOnlyRules {
 public:
  /// Indexes the rules of `RuleType::ip_only`. `most_indexed`: the most rule references in all slices of an index. A
  /// rule is referenced by every slice that it covers; if overlapping ranges make too many references, rules become
  /// candidates for every packet.
  explicit IpOnlyRules(std::span<const CompiledRule> rules, std::size_t most_indexed = 32'000'000);

  [[nodiscard]] bool empty() const noexcept { return empty_; }

  /// Calls `use(place)` for each rule that may match the packet; the caller has to check its whole header.
  template <typename Use>
  void for_candidates(const stack::DecodedPacket& packet, Use&& use) const {
    for (const std::uint32_t place : unindexed_) use(place);
    if (packet.ip_version == 4) {
      by_source_v4_.visit(v4(packet.source), use);
      by_destination_v4_.visit(v4(packet.destination), use);
    } else if (packet.ip_version == 6) {
      by_source_v6_.visit(packet.source.address, use);
      by_destination_v6_.visit(packet.destination.address, use);
    }
  }

 private:
  /// Addresses divided into slices at every first and last address of a rule; each slice lists the rules that cover it.
  template <typename Address>
  struct Index {
    std::vector<Address> from;          // first address of each slice, sorted
    std::vector<std::uint32_t> starts;  // into `rules`; one more than slices
    std::vector<std::uint32_t> rules;

    template <typename Use>
    void visit(const Address& address, Use&& use) const {
      const auto after = std::upper_bound(from.begin(), from.end(), address);
      if (after == from.begin()) return;
      const auto slice = static_cast<std::size_t>(after - from.begin()) - 1;
      for (std::uint32_t i = starts[slice]; i < starts[slice + 1]; ++i) use(rules[i]);
    }
  };

  static Ipv4Address v4(const stack::Endpoint& endpoint) noexcept {
    return {static_cast<std::uint32_t>(endpoint.address.low)};
  }

  /// Empty if it would be too large.
  template <typename Address>
  static std::optional<Index<Address>> index(std::span<const CompiledRule> rules, std::span<const std::uint32_t> places,
                                             AddressSet Rule::*side, std::size_t most_indexed);

  bool empty_ = true;
  std::vector<std::uint32_t> unindexed_;
  Index<Ipv4Address> by_source_v4_, by_destination_v4_;
  Index<Ipv6Address> by_source_v6_, by_destination_v6_;
};

}  // namespace penstock::nids
