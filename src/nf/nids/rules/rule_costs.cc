// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/rules/rule_costs.h"

#include <algorithm>

#include "base/units.h"

namespace penstock::nids {

void RuleCosts::check(std::size_t cost, std::size_t most, const char* message, std::string (*format)(std::uint64_t)) {
  if (cost <= most || passed_) return;
  passed_ = {{}, message, "more than " + format(most), "at most " + format(most) + " (most_rules raises it)"};
}

void RuleCosts::add_rule(std::string_view text) {
  check(++rules_, most_rules_, "too many rules", &format_count);
  items_ += static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return c == ';' || c == ','; }));
  check(items_, kItemsPerRule * most_rules_, "too many options and list items in all rules", &format_count);
}

void RuleCosts::add_header(const AddressSet& addresses, const PortSet& ports) {
  header_bytes_ += bytes_of(addresses) + bytes_of(ports);
  check(header_bytes_, kHeaderBytesPerRule * most_rules_, "too many addresses and ports in all rules", &format_size);
}

std::size_t bytes_of(const AddressSet& set) noexcept {
  return set.v4.size() * sizeof(AddressSet::Range<Ipv4Address>) +
         set.v6.size() * sizeof(AddressSet::Range<Ipv6Address>);
}
std::size_t bytes_of(const PortSet& set) noexcept {
  constexpr std::size_t kWhileGrouped = 32;  // bytes per range while rules are grouped, more than later
  return set.ranges.size() * kWhileGrouped;
}

}  // namespace penstock::nids
