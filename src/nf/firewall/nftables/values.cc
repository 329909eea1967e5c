// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nftables/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/ip_address.h"
#include "base/units.h"
#include "nf/firewall/nftables/text.h"
#include "nf/firewall/rule_text.h"

namespace penstock::firewall::nftables {

namespace {

using classify::Interval;
using classify::IntervalSet;
using classify::Number;
using classify::number;

using Symbol = std::pair<std::string_view, std::uint16_t>;

// `nft describe` prints these lists.
constexpr auto kIcmpTypes = std::to_array<Symbol>({{"echo-reply", 0},
                                                   {"destination-unreachable", 3},
                                                   {"source-quench", 4},
                                                   {"redirect", 5},
                                                   {"echo-request", 8},
                                                   {"router-advertisement", 9},
                                                   {"router-solicitation", 10},
                                                   {"time-exceeded", 11},
                                                   {"parameter-problem", 12},
                                                   {"timestamp-request", 13},
                                                   {"timestamp-reply", 14},
                                                   {"info-request", 15},
                                                   {"info-reply", 16},
                                                   {"address-mask-request", 17},
                                                   {"address-mask-reply", 18}});
constexpr auto kIcmpCodes = std::to_array<Symbol>({{"net-unreachable", 0},
                                                   {"host-unreachable", 1},
                                                   {"prot-unreachable", 2},
                                                   {"port-unreachable", 3},
                                                   {"frag-needed", 4},
                                                   {"net-prohibited", 9},
                                                   {"host-prohibited", 10},
                                                   {"admin-prohibited", 13}});
constexpr auto kIcmpv6Types = std::to_array<Symbol>({{"destination-unreachable", 1},
                                                     {"packet-too-big", 2},
                                                     {"time-exceeded", 3},
                                                     {"parameter-problem", 4},
                                                     {"echo-request", 128},
                                                     {"echo-reply", 129},
                                                     {"mld-listener-query", 130},
                                                     {"mld-listener-report", 131},
                                                     {"mld-listener-done", 132},
                                                     {"mld-listener-reduction", 132},
                                                     {"nd-router-solicit", 133},
                                                     {"nd-router-advert", 134},
                                                     {"nd-neighbor-solicit", 135},
                                                     {"nd-neighbor-advert", 136},
                                                     {"nd-redirect", 137},
                                                     {"router-renumbering", 138},
                                                     {"ind-neighbor-solicit", 141},
                                                     {"ind-neighbor-advert", 142},
                                                     {"mld2-listener-report", 143}});
constexpr auto kIcmpv6Codes = std::to_array<Symbol>({{"no-route", 0},
                                                     {"admin-prohibited", 1},
                                                     {"addr-unreachable", 3},
                                                     {"port-unreachable", 4},
                                                     {"policy-fail", 5},
                                                     {"reject-route", 6}});
constexpr auto kTcpFlags = std::to_array<Symbol>({{"fin", 0x01},
                                                  {"syn", 0x02},
                                                  {"rst", 0x04},
                                                  {"psh", 0x08},
                                                  {"ack", 0x10},
                                                  {"urg", 0x20},
                                                  {"ecn", 0x40},
                                                  {"cwr", 0x80}});
constexpr auto kProtocolFamilies = std::to_array<Symbol>({{"ipv4", 2}, {"ipv6", 10}});
constexpr auto kEtherTypes = std::to_array<Symbol>(
    {{"ip", 0x0800}, {"arp", 0x0806}, {"ip6", 0x86dd}, {"8021q", 0x8100}, {"8021ad", 0x88a8}, {"vlan", 0x8100}});
/// Names of /etc/protocols, which nft prints, beside those of parse_protocol.
constexpr auto kMoreProtocols = std::to_array<Symbol>(
    {{"ip", 0},          {"ggp", 3},        {"st", 5},       {"igp", 9},    {"pup", 12},      {"hmp", 20},
     {"xns-idp", 22},    {"rdp", 27},       {"iso-tp4", 29}, {"xtp", 36},   {"ddp", 37},      {"idpr-cmtp", 38},
     {"ipv6-route", 43}, {"ipv6-frag", 44}, {"idrp", 45},    {"rsvp", 46},  {"skip", 57},     {"ipv6-nonxt", 59},
     {"ipv6-opts", 60},  {"rspf", 73},      {"vmtp", 81},    {"eigrp", 88}, {"ax.25", 93},    {"etherip", 97},
     {"encap", 98},      {"comp", 108},     {"ipcomp", 108}, {"isis", 124}, {"fc", 133},      {"mpls-in-ip", 137},
     {"manet", 138},     {"shim6", 140},    {"wesp", 141},   {"rohc", 142}, {"ethernet", 143}});

struct TypeEntry {
  std::string_view name;
  std::string_view expected;  // for an error
  Number last;
  std::span<const Symbol> symbols{};
};

constexpr Number kAllOnes{~std::uint64_t{0}, ~std::uint64_t{0}};

/// By Type.
constexpr auto kTypes = std::to_array<TypeEntry>({
    {"ipv4_addr", "an IPv4 address", number(0xffffffff)},
    {"ipv6_addr", "an IPv6 address", kAllOnes},
    {"inet_service", "a port, as a number up to 65535", number(0xffff)},
    {"inet_proto", "a protocol, as a name or a number up to 255 (`nft -nj` prints numbers)", number(0xff)},
    {"icmp_type", "an ICMP type, as a name or a number up to 255", number(0xff), kIcmpTypes},
    {"icmp_code", "an ICMP code, as a name or a number up to 255", number(0xff), kIcmpCodes},
    {"icmpv6_type", "an ICMPv6 type, as a name or a number up to 255", number(0xff), kIcmpv6Types},
    {"icmpv6_code", "an ICMPv6 code, as a name or a number up to 255", number(0xff), kIcmpv6Codes},
    {"tcp_flag", "TCP flags: fin, syn, rst, psh, ack, urg, ecn, cwr, or a number up to 255", number(0xff), kTcpFlags},
    {"nf_proto", "ipv4 or ipv6", number(1), kProtocolFamilies},
    {"ether_type", "ip, ip6, or another Ethernet type", number(1), kEtherTypes},
    {"ifname", "the name of an interface", number(classify::kOtherPort)},
    {"iface_index", "the name of an interface", number(classify::kOtherPort)},
    {"ct_state", "invalid, new, established, related or untracked", number(classify::kConnectionNumbers - 1)},
    {"ct_dir", "original or reply", number(classify::kConnectionNumbers - 1)},
    {"ct_status", "snat or dnat", number(classify::kConnectionNumbers - 1)},
    {"", "0", number(1)},
});

const TypeEntry& entry_of(Type type) { return kTypes[static_cast<std::size_t>(type)]; }

std::string shown(const Json& value) {
  if (value.is_string()) return in_quotes(value.get_ref<const std::string&>());
  return in_quotes(json_text(value));
}

tl::unexpected<Problem> wrong(Type type, const Json& value) {
  return mistake("wrong value", shown(value), std::string(entry_of(type).expected));
}

/// The member of an object that has only this one.
const Json* only_member(const Json& value, const char* name) {
  if (!value.is_object() || value.size() != 1) return nullptr;
  const auto member = value.find(name);
  return member == value.end() ? nullptr : &*member;
}

std::optional<Number> read_address(Type type, const Json& value) {
  if (!value.is_string()) return std::nullopt;
  const std::string& text = value.get_ref<const std::string&>();
  if (type == Type::ipv6_addr) return parse_ipv6(text);
  const auto address = parse_ipv4(text);
  if (!address) return std::nullopt;
  return number(address->bits);
}

std::optional<std::uint64_t> read_symbol(Type type, const std::string& text) {
  const auto among = [&](std::span<const Symbol> symbols) -> std::optional<std::uint64_t> {
    const auto found = std::ranges::find(symbols, std::string_view(text), &Symbol::first);
    if (found == symbols.end()) return std::nullopt;
    return found->second;
  };
  if (type != Type::inet_proto) return among(entry_of(type).symbols);
  if (const auto protocol = among(kMoreProtocols)) return protocol;
  return parse_protocol(text);
}

std::optional<Number> read_point(Type type, const Json& value) {
  if (type == Type::ipv4_addr || type == Type::ipv6_addr) return read_address(type, value);
  const auto read = read_number(type, value);
  if (!read) return std::nullopt;
  return number(*read);
}

/// "syn"; 2; ["syn", "ack"]; {"|": ["syn", "ack"]}, also nested
std::optional<std::uint64_t> read_flags(const Json& value) {
  const Json* const either = only_member(value, "|");
  const Json& list = either != nullptr ? *either : value;
  if (!list.is_array()) return read_number(Type::tcp_flag, list);
  std::uint64_t flags = 0;
  for (const Json& one : list) {
    const auto more = read_flags(one);
    if (!more) return std::nullopt;
    flags |= *more;
  }
  return flags;
}

Checked<IntervalSet> read_prefix(Type type, const Json& value, const Json& prefix) {
  const unsigned bits = type == Type::ipv4_addr ? 32 : 128;
  if (!prefix.is_object() || !prefix.contains("addr") || !prefix.contains("len")) return wrong(type, value);
  const auto address = read_address(type, prefix["addr"]);
  const Json& length = prefix["len"];
  if (!address || !length.is_number_unsigned() || length.get<std::uint64_t>() > bits) return wrong(type, value);
  const auto network = static_cast<unsigned>(length.get<std::uint64_t>());
  if (type == Type::ipv4_addr) {
    const std::uint64_t mask = ipv4_mask(network);
    const std::uint64_t low = address->low & mask;
    return IntervalSet{{number(low), number(low | (~mask & 0xffffffff))}};
  }
  const Ipv6Address mask = ipv6_mask(network);
  const Number low{address->high & mask.high, address->low & mask.low};
  return IntervalSet{{low, {low.high | ~mask.high, low.low | ~mask.low}}};
}

IntervalSet of_ports(std::uint64_t ports) {
  IntervalSet set;
  for (std::uint64_t port = 0; port <= classify::kOtherPort; ++port) {
    if ((ports >> port & 1) != 0) set.push_back({number(port), number(port)});
  }
  return classify::united(std::move(set));
}

Checked<IntervalSet> read_interface(Type type, const Json& value, Names& names) {
  if (!value.is_string()) return wrong(type, value);
  std::string name = value.get<std::string>();
  const std::uint64_t index = parse_integer(name).value_or(0);
  if (type == Type::iface_index && index != 0) {
    return unsupported("an interface index whose interface is gone", in_quotes(name), "an interface that exists");
  }
  if (name.find('\\') != std::string::npos || name.ends_with('+')) {
    return unsupported("an interface name with \\, or with + at its end, is not supported", in_quotes(name));
  }
  if (name.empty()) return wrong(type, value);
  if (type == Type::ifname && name == "*") return IntervalSet{domain_of(type)};
  if (type == Type::ifname && name.ends_with('*')) name.back() = '+';
  names.used.insert(name);
  const auto ports = names.interfaces.ports_of(name);
  if (!ports) names.unknown.insert(name);
  return of_ports(ports.value_or(0));
}

/// The connections of which the word is true; empty if the type has no such word.
std::optional<std::uint64_t> connections_of(Type type, const std::string& word) {
  using classify::Connection;
  if (type == Type::ct_state) {
    const auto state = classify::connection_state_named(word);
    if (!state) return std::nullopt;
    return classify::connections_where([&](const Connection& connection) { return connection.state == *state; });
  }
  const bool first = word == (type == Type::ct_dir ? "original" : "snat");
  if (!first && word != (type == Type::ct_dir ? "reply" : "dnat")) return std::nullopt;
  return classify::connections_where([&](const Connection& connection) {
    if (!connection.exists()) return false;
    if (type == Type::ct_dir) return connection.reply != first;
    return first ? connection.source_translated : connection.destination_translated;
  });
}

/// "new"; ["established", "related"]: any of them
Checked<IntervalSet> read_connections(Type type, const Json& value) {
  std::uint64_t connections = 0;
  const auto add = [&](const Json& word) {
    const auto known = word.is_string() ? connections_of(type, word.get_ref<const std::string&>()) : std::nullopt;
    connections |= known.value_or(0);
    return known.has_value();
  };
  const bool read = value.is_array() ? !value.empty() && std::ranges::all_of(value, add) : add(value);
  if (read) {
    return of_connections(
        [&](const classify::Connection& one) { return (connections >> classify::number_of(one) & 1) != 0; });
  }
  if (type == Type::ct_status)
    return unsupported("a status of connections that is not supported", in_words(value), "snat or dnat");
  return wrong(type, value);
}

/// Families as 0 and 1. Other Ethernet types are none of those.
IntervalSet of_family(Type type, std::uint64_t value) {
  const bool ether = type == Type::ether_type;
  if (value == (ether ? 0x0800 : 2)) return only(kIpv4);
  if (value == (ether ? 0x86dd : 10)) return only(kIpv6);
  return {};
}

}  // namespace

std::optional<std::uint64_t> read_number(Type type, const Json& value) {
  std::optional<std::uint64_t> result;
  if (value.is_number_unsigned()) result = value.get<std::uint64_t>();
  if (value.is_string()) result = read_symbol(type, value.get_ref<const std::string&>());
  const bool wide = type == Type::inet_service || type == Type::ether_type || type == Type::fragment_offset;
  if (!result || *result > (wide ? 0xffffU : 0xffU)) return std::nullopt;
  return result;
}

std::optional<Type> type_of(std::string_view name) {
  const auto found = std::ranges::find(kTypes, name, &TypeEntry::name);
  if (found == kTypes.end() || name.empty()) return std::nullopt;
  return static_cast<Type>(found - kTypes.begin());
}

std::string_view name(Type type) { return entry_of(type).name; }

bool is_ordered(Type type) noexcept {
  switch (type) {
    case Type::tcp_flag:
    case Type::nf_proto:
    case Type::ether_type:
    case Type::ifname:
    case Type::iface_index:
    case Type::ct_state:
    case Type::ct_dir:
    case Type::ct_status: return false;
    default: return true;
  }
}

Interval domain_of(Type type) noexcept { return {number(0), entry_of(type).last}; }

IntervalSet only(std::uint64_t value) { return {{number(value), number(value)}}; }

Checked<IntervalSet> read_value(Type type, const Json& value, Names& names) {
  switch (type) {
    case Type::ifname:
    case Type::iface_index: return read_interface(type, value, names);
    case Type::ct_state:
    case Type::ct_dir:
    case Type::ct_status: return read_connections(type, value);
    case Type::tcp_flag: {
      const auto flags = read_flags(value);
      if (!flags) return wrong(type, value);
      return only(*flags);
    }
    case Type::nf_proto:
    case Type::ether_type: {
      // Their byte order depends on the version of nft.
      if (type == Type::ether_type && value.is_number()) {
        return unsupported("an Ethernet type as a number is not supported", in_words(value), "a name, as without `-n`");
      }
      const auto family = read_number(type, value);
      if (!family) return wrong(type, value);
      return of_family(type, *family);
    }
    case Type::fragment_offset:
      if (read_number(type, value) != 0) {
        return unsupported("a fragment offset other than 0 is not supported", in_words(value), "a comparison with 0");
      }
      return only(0);
    default: break;
  }
  if (const Json* const range = only_member(value, "range")) {
    if (!range->is_array() || range->size() != 2) return wrong(type, value);
    const auto low = read_point(type, (*range)[0]), high = read_point(type, (*range)[1]);
    if (!low || !high || *high < *low) return wrong(type, value);
    return IntervalSet{{*low, *high}};
  }
  const bool is_address = type == Type::ipv4_addr || type == Type::ipv6_addr;
  if (const Json* const prefix = only_member(value, "prefix"); prefix != nullptr && is_address) {
    return read_prefix(type, value, *prefix);
  }
  const auto point = read_point(type, value);
  if (!point) return wrong(type, value);
  return IntervalSet{{*point, *point}};
}

}  // namespace penstock::firewall::nftables
