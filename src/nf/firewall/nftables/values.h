// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The values that rules compare fields with, by the data types of nft(8), as sets of numbers. Addresses, ports and so
// on are themselves. Address families are 0 and 1, interfaces the ports of the chain that they stand for, and what is
// said of connections the numbers of those for which it is true (classify/connection.h).

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "classify/connection.h"
#include "classify/interfaces.h"
#include "classify/interval_set.h"
#include "nf/firewall/nftables/document.h"
#include "nf/firewall/nftables/problem.h"

namespace penstock::firewall::nftables {

enum class Type : std::uint8_t {
  ipv4_addr,
  ipv6_addr,
  inet_service,
  inet_proto,
  icmp_type,
  icmp_code,
  icmpv6_type,
  icmpv6_code,
  tcp_flag,
  nf_proto,
  ether_type,
  ifname,
  iface_index,
  ct_state,
  ct_dir,
  ct_status,
  fragment_offset,  // not a type of nft: 0, or 1 for any other offset
};

/// "ipv4_addr"; empty if the type is unknown.
[[nodiscard]] std::optional<Type> type_of(std::string_view name);
[[nodiscard]] std::string_view name(Type type);
[[nodiscard]] bool is_ordered(Type type) noexcept;  // whether < and ranges make sense

/// All values of a type.
[[nodiscard]] classify::Interval domain_of(Type type) noexcept;

// Of the values that stand for address families.
inline constexpr std::uint64_t kIpv4 = 0;
inline constexpr std::uint64_t kIpv6 = 1;

[[nodiscard]] classify::IntervalSet only(std::uint64_t value);

/// The numbers of the connections for which `holds` is true.
template <typename Holds>
[[nodiscard]] classify::IntervalSet of_connections(const Holds& holds) {
  const std::uint64_t set = classify::connections_where(holds);
  std::vector<classify::Interval> numbers;
  for (std::uint32_t n = 0; n < classify::kConnectionNumbers; ++n) {
    if ((set >> n & 1) != 0) numbers.push_back({classify::number(n), classify::number(n)});
  }
  return classify::united(std::move(numbers));
}

/// How interface names in values are resolved.
struct Names {
  const classify::Interfaces& interfaces;
  std::set<std::string, std::less<>>& used;  // gets all names, with + for a wildcard
  std::set<std::string, std::less<>>& unknown;
};

/// A number of the type, or its name; empty if there is none. Not for addresses and interfaces.
[[nodiscard]] std::optional<std::uint64_t> read_number(Type type, const Json& value);

/// Reads an address, a number, a symbolic constant, a prefix, a range or a combination of flags.
[[nodiscard]] Checked<classify::IntervalSet> read_value(Type type, const Json& value, Names& names);

}  // namespace penstock::firewall::nftables
