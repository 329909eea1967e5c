// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/rule_text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <utility>

#include "base/ascii.h"
#include "base/text_file.h"
#include "base/units.h"
#include "packet/ip.h"

namespace penstock::firewall {

namespace {

constexpr std::uint64_t kAllOnes = ~std::uint64_t{0};

constexpr std::array<std::pair<std::string_view, std::uint8_t>, 23> kProtocols{{
    {"icmp", 1},      {"igmp", 2},   {"ipencap", 4},
    {"tcp", 6},       {"egp", 8},    {"udp", 17},
    {"dccp", 33},     {"ipv6", 41},  {"gre", 47},
    {"esp", 50},      {"ah", 51},    {"ipv6-icmp", 58},
    {"icmpv6", 58},   {"icmp6", 58}, {"ospf", 89},
    {"ipip", 94},     {"pim", 103},  {"vrrp", 112},
    {"l2tp", 115},    {"sctp", 132}, {"mobility-header", 135},
    {"udplite", 136}, {"hip", 139},
}};

/// An address, IPv4 in the low 32 bits.
std::optional<std::pair<NetworkLayer, Ipv6Address>> parse_host(std::string_view text) {
  if (const auto ipv4 = parse_ipv4(text)) return std::pair{NetworkLayer::ipv4, Ipv6Address{0, ipv4->bits}};
  if (const auto ipv6 = parse_ipv6(text)) return std::pair{NetworkLayer::ipv6, *ipv6};
  return std::nullopt;
}

/// The mask after the slash, as a length or an address, in the 128 bits of an address.
std::optional<Ipv6Address> parse_mask(std::string_view text, NetworkLayer family) {
  const unsigned bits = family == NetworkLayer::ipv4 ? 32 : 128;
  if (const auto mask = parse_host(text)) {
    if (mask->first != family) return std::nullopt;
    return mask->second;
  }
  const auto length = parse_integer(text);
  if (!length || *length > bits || text.starts_with("0x")) return std::nullopt;
  if (family == NetworkLayer::ipv4) return Ipv6Address{0, ipv4_mask(static_cast<unsigned>(*length))};
  return ipv6_mask(static_cast<unsigned>(*length));
}

bool is_prefix(const Ipv6Address& mask, NetworkLayer family) {
  // The complement of a prefix mask is 2^k - 1: adding 1 leaves no common bit.
  const Ipv6Address rest =
      family == NetworkLayer::ipv4 ? Ipv6Address{0, ~mask.low & 0xffffffff} : Ipv6Address{~mask.high, ~mask.low};
  const std::uint64_t low = rest.low + 1;
  const std::uint64_t high = rest.high + (low == 0 ? 1 : 0);
  return (rest.low & low) == 0 && (rest.high & high) == 0;
}

struct MaskedAddress {
  NetworkLayer family;
  Ipv6Address address, mask;
};

std::optional<MaskedAddress> parse_masked_address(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto host = parse_host(text.substr(0, slash));
  if (!host) return std::nullopt;
  if (slash == std::string_view::npos) {
    const bool ipv4 = host->first == NetworkLayer::ipv4;
    return MaskedAddress{host->first, host->second,
                         ipv4 ? Ipv6Address{0, 0xffffffff} : Ipv6Address{kAllOnes, kAllOnes}};
  }
  const auto mask = parse_mask(text.substr(slash + 1), host->first);
  if (!mask) return std::nullopt;
  return MaskedAddress{host->first, host->second, *mask};
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  const auto port = parse_integer(text);
  if (!port || *port > 0xffff) return std::nullopt;
  return static_cast<std::uint16_t>(*port);
}

}  // namespace

bool AddressRange::everything() const noexcept {
  const Ipv6Address last = family == NetworkLayer::ipv4 ? Ipv6Address{0, 0xffffffff} : Ipv6Address{kAllOnes, kAllOnes};
  return low == Ipv6Address{} && high == last;
}

std::optional<AddressRange> parse_address(std::string_view text) {
  const auto masked = parse_masked_address(text);
  if (!masked || !is_prefix(masked->mask, masked->family)) return std::nullopt;
  const auto& [family, address, mask] = *masked;
  const std::uint64_t ones = family == NetworkLayer::ipv4 ? 0xffffffff : kAllOnes;
  const Ipv6Address low{address.high & mask.high, address.low & mask.low};
  const Ipv6Address high{family == NetworkLayer::ipv4 ? 0 : low.high | ~mask.high, low.low | (~mask.low & ones)};
  return AddressRange{family, low, high};
}

bool has_scattered_mask(std::string_view text) {
  const auto masked = parse_masked_address(text);
  return masked && !is_prefix(masked->mask, masked->family);
}

std::optional<AddressRange> parse_address_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto low = parse_host(text.substr(0, dash));
  const auto high = dash == std::string_view::npos ? low : parse_host(text.substr(dash + 1));
  if (!low || !high || low->first != high->first || high->second < low->second) return std::nullopt;
  return AddressRange{low->first, low->second, high->second};
}

std::optional<classify::PortRange> parse_port_range(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    const auto port = parse_port(text);
    if (!port) return std::nullopt;
    return classify::PortRange{*port, *port};
  }
  const auto low = colon == 0 ? std::uint16_t{0} : parse_port(text.substr(0, colon));
  const auto high = colon + 1 == text.size() ? std::uint16_t{0xffff} : parse_port(text.substr(colon + 1));
  if (!low || !high || *high < *low) return std::nullopt;
  return classify::PortRange{*low, *high};
}

std::optional<std::vector<classify::PortRange>> parse_port_list(std::string_view text) {
  std::vector<classify::PortRange> ranges;
  for (;;) {
    const std::size_t comma = text.find(',');
    const auto range = parse_port_range(text.substr(0, comma));
    if (!range || ranges.size() == 0xffff) return std::nullopt;
    ranges.push_back(*range);
    if (comma == std::string_view::npos) return ranges;
    text.remove_prefix(comma + 1);
  }
}

std::optional<std::uint8_t> parse_protocol(std::string_view text) {
  if (const auto number = parse_integer(text)) {
    if (*number > 0xff) return std::nullopt;
    return static_cast<std::uint8_t>(*number);
  }
  for (const auto& [name, number] : kProtocols) {
    if (equals_ignoring_case(text, name)) return number;
  }
  return std::nullopt;
}

classify::Condition address_condition(classify::Ruleset& rules, const AddressRange& range, bool source, bool negated) {
  if (range.family == NetworkLayer::ipv4) {
    return classify::ipv4_condition(source ? classify::Subject::source4 : classify::Subject::destination4,
                                    {static_cast<std::uint32_t>(range.low.low)},
                                    {static_cast<std::uint32_t>(range.high.low)}, negated);
  }
  return classify::ipv6_condition(rules, source ? classify::Subject::source6 : classify::Subject::destination6,
                                  range.low, range.high, negated);
}

std::optional<std::pair<Ipv6Address, Ipv6Address>> parse_masked_address(std::string_view text, NetworkLayer family) {
  const bool ipv4 = family == NetworkLayer::ipv4;
  const auto address_of = [&](std::string_view one) -> std::optional<Ipv6Address> {
    if (!ipv4) return parse_ipv6(one);
    const auto address = parse_ipv4(one);
    if (!address) return std::nullopt;
    return Ipv6Address{0, address->bits};
  };
  const std::size_t slash = text.find('/');
  const auto address = address_of(text.substr(0, slash));
  std::optional<Ipv6Address> mask = ipv4 ? Ipv6Address{0, 0xffffffff} : Ipv6Address{~0ULL, ~0ULL};
  if (slash != std::string_view::npos) {
    const std::string_view given = text.substr(slash + 1);
    mask = address_of(given);
    const auto length = parse_integer(given);
    if (length && *length <= (ipv4 ? 32U : 128U)) {
      const auto bits = static_cast<unsigned>(*length);
      mask = ipv4 ? Ipv6Address{0, ipv4_mask(bits)} : ipv6_mask(bits);
    }
  }
  if (!address || !mask) return std::nullopt;
  return std::pair{Ipv6Address{address->high & mask->high, address->low & mask->low}, *mask};
}

std::optional<std::uint64_t> parse_time_of_day(std::string_view text) {
  std::uint64_t second = 0, parts = 0;
  for (const std::string_view part : split(text, ':')) {
    const auto number = parse_integer(part);
    if (!number || *number >= (parts == 0 ? 24U : 60U) || ++parts > 3) return std::nullopt;
    second = second * 60 + *number;
  }
  if (parts < 2) return std::nullopt;
  return parts == 2 ? second * 60 : second;
}

std::optional<std::uint64_t> parse_date(std::string_view text) {
  const std::size_t t = text.find('T');
  std::vector<std::uint64_t> parts;
  for (const std::string_view part : split(text.substr(0, t), '-')) {
    const auto number = parse_integer(part);
    if (!number || *number > 9999) return std::nullopt;
    parts.push_back(*number);
  }
  if (parts.size() > 3) return std::nullopt;
  parts.resize(3, 1);
  const std::chrono::year_month_day day{std::chrono::year(static_cast<int>(parts[0])),
                                        std::chrono::month(static_cast<unsigned>(parts[1])),
                                        std::chrono::day(static_cast<unsigned>(parts[2]))};
  if (!day.ok() || parts[0] < 1970) return std::nullopt;
  std::uint64_t second = 0;
  if (t != std::string_view::npos) {
    const std::string_view time = text.substr(t + 1);
    const auto hour = time.size() <= 2 ? parse_integer(time) : std::nullopt;
    const auto read = hour && *hour < 24 ? std::optional(*hour * 3600) : parse_time_of_day(time);
    if (!read) return std::nullopt;
    second = *read;
  }
  return static_cast<std::uint64_t>(std::chrono::sys_days(day).time_since_epoch().count()) * 86'400 + second;
}

}  // namespace penstock::firewall
