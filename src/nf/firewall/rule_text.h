// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Parses the elements of rules and tuples: addresses, ports, protocols.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "classify/rule.h"

namespace penstock::firewall {

/// What to do about rules at hook output that name the interface by which packets leave.
inline constexpr std::string_view kOutputAfterRouter = ": put `hook: output` after it, if no rule at output translates";

/// Addresses low..high of one family, inclusive; IPv4 addresses are in the low 32 bits.
struct AddressRange {
  NetworkLayer family = NetworkLayer::none;
  Ipv6Address low, high;
  [[nodiscard]] bool everything() const noexcept;
};

/// "10.0.0.0/8", "10.0.0.0/255.0.0.0", "2001:db8::/32", "2001:db8::/ffff:ffff::", or an address. Host bits are ignored,
/// as iptables does.
[[nodiscard]] std::optional<AddressRange> parse_address(std::string_view text);
/// Whether the text is an address with a non-contiguous mask: 10.0.0.1/255.0.0.255.
[[nodiscard]] bool has_scattered_mask(std::string_view text);
/// An address of the family, also with a mask of any bits ("10.0.0.5/255.0.0.255"): the bits under the mask, and the
/// mask.
[[nodiscard]] std::optional<std::pair<Ipv6Address, Ipv6Address>> parse_masked_address(std::string_view text,
                                                                                      NetworkLayer family);
/// "2030-01-31T23:59:59", of which the end may be missing: seconds since 1970, of UTC.
[[nodiscard]] std::optional<std::uint64_t> parse_date(std::string_view text);
/// "23:59", "23:59:59": seconds
[[nodiscard]] std::optional<std::uint64_t> parse_time_of_day(std::string_view text);
/// "10.0.0.1-10.0.0.9"
[[nodiscard]] std::optional<AddressRange> parse_address_range(std::string_view text);
/// "80", "80:90", ":90", "1024:"
[[nodiscard]] std::optional<classify::PortRange> parse_port_range(std::string_view text);
/// "53,100:200"
[[nodiscard]] std::optional<std::vector<classify::PortRange>> parse_port_list(std::string_view text);
/// "tcp", "TCP" or "6"; not "all".
[[nodiscard]] std::optional<std::uint8_t> parse_protocol(std::string_view text);

[[nodiscard]] classify::Condition address_condition(classify::Ruleset& rules, const AddressRange& range, bool source,
                                                    bool negated);

}  // namespace penstock::firewall
