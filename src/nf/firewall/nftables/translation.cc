// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nftables/translation.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/ip_address.h"
#include "base/units.h"
#include "conntrack/nat_range.h"

namespace penstock::firewall::nftables {

namespace {

using conntrack::NatRange;
using Way = classify::Translation::Way;

constexpr std::array<std::pair<std::string_view, Way>, 4> kWays{
    {{"snat", Way::source}, {"dnat", Way::destination}, {"masquerade", Way::masquerade}, {"redirect", Way::redirect}}};
constexpr std::array<std::pair<std::string_view, std::uint8_t>, 4> kFlags{{{"random", NatRange::kRandom},
                                                                           {"fully-random", NatRange::kFullyRandom},
                                                                           {"persistent", NatRange::kPersistent},
                                                                           {"netmap", NatRange::kNetmap}}};

struct Address {
  Ipv6Address bits;  // IPv4: {0, address}
  NetworkLayer family;
};

std::optional<Address> parse_address(const Json& value) {
  if (!value.is_string()) return std::nullopt;
  const std::string& text = value.get_ref<const std::string&>();
  if (const auto ipv4 = parse_ipv4(text)) return Address{{0, ipv4->bits}, NetworkLayer::ipv4};
  if (const auto ipv6 = parse_ipv6(text)) return Address{*ipv6, NetworkLayer::ipv6};
  return std::nullopt;
}

/// The last address of a prefix whose first one this is.
Ipv6Address last_of(const Address& first, unsigned length) {
  const Ipv6Address mask = ipv6_mask(first.family == NetworkLayer::ipv4 ? 96 + length : length);
  return {first.bits.high | ~mask.high, first.bits.low | ~mask.low};
}

/// "10.0.0.1"; {"range": ["10.0.0.1", "10.0.0.9"]}; {"prefix": {"addr": "10.0.0.0", "len": 24}}
Checked<void> read_addresses(const Json& value, ReadTranslation& into) {
  NatRange& range = into.translation.range;
  std::optional<Address> first = parse_address(value), last = first;
  if (value.is_object() && value.size() == 1 && value.contains("range")) {
    const Json& ends = value["range"];
    if (ends.is_array() && ends.size() == 2) first = parse_address(ends[0]), last = parse_address(ends[1]);
  } else if (value.is_object() && value.size() == 1 && value.contains("prefix")) {
    const Json& prefix = value["prefix"];
    if (prefix.is_object() && prefix.contains("addr") && prefix.contains("len") && prefix["len"].is_number_unsigned()) {
      first = last = parse_address(prefix["addr"]);
      const auto length = prefix["len"].get<std::uint64_t>();
      if (first && length > (first->family == NetworkLayer::ipv4 ? 32U : 128U)) first.reset();
      if (first) last->bits = last_of(*first, static_cast<unsigned>(length));
    }
  }
  if (!first || !last || first->family != last->family || last->bits < first->bits)
    return unsupported("this address is not supported", value.dump(), "an address, a range or a prefix");
  range.flags |= NatRange::kAddresses;
  range.first_address = first->bits;
  range.last_address = last->bits;
  into.family = first->family;
  return {};
}

/// 8080; {"range": [1024, 2048]}
Checked<void> read_ports(const Json& value, NatRange& range) {
  const auto is_port = [](const Json& port) { return port.is_number_unsigned() && port <= 0xffff; };
  const bool is_range = value.is_object() && value.size() == 1 && value.contains("range") &&
                        value["range"].is_array() && value["range"].size() == 2;
  const Json& first = is_range ? value["range"][0] : value;
  const Json& last = is_range ? value["range"][1] : value;
  if (!is_port(first) || !is_port(last) || last < first)
    return unsupported("this port is not supported", value.dump(), "a port or a range");
  range.flags |= NatRange::kPorts;
  range.first_port = first.get<std::uint16_t>();
  range.last_port = last.get<std::uint16_t>();
  return {};
}

Checked<void> read_flags(const Json& value, NatRange& range) {
  const Json list = value.is_array() ? value : Json::array({value});
  for (const Json& flag : list) {
    const auto is_meant = [&](const auto& known) { return flag == known.first; };
    const auto known = std::ranges::find_if(kFlags, is_meant);
    if (known == kFlags.end()) return unsupported("this flag is not supported", flag.dump());
    range.flags |= known->second;
  }
  return {};
}

}  // namespace

bool is_translation(std::string_view kind) {
  return std::ranges::find(kWays, kind, &decltype(kWays)::value_type::first) != kWays.end();
}

Checked<ReadTranslation> read_translation(std::string_view kind, const Json& value) {
  ReadTranslation read;
  read.translation.way = std::ranges::find(kWays, kind, &decltype(kWays)::value_type::first)->second;
  NatRange& range = read.translation.range;
  if (!value.is_null() && !value.is_object()) return mistake("wrong translation", value.dump(), "an object");
  for (const auto& [member, part] : value.items()) {
    Checked<void> done;
    if (member == "addr") {
      done = read_addresses(part, read);
    } else if (member == "port") {
      done = read_ports(part, range);
    } else if (member == "flags") {
      done = read_flags(part, range);
    } else if (member != "family" && member != "type_flags") {
      done = unsupported("this part of a translation is not supported", in_quotes(member));
    }
    if (!done) return within("." + member, std::move(done.error()));
  }
  const bool has_prefix =
      value.is_object() && value.contains("addr") && value["addr"].is_object() && value["addr"].contains("prefix");
  // "10.1.1.0/24" without "prefix to" is a range.
  if (range.has(NatRange::kNetmap) && !has_prefix) return unsupported("netmap needs a prefix", value.dump());
  const bool to_addresses = read.translation.way == Way::source || read.translation.way == Way::destination;
  if (to_addresses && !range.has(NatRange::kAddresses) && !range.has(NatRange::kPorts))
    return unsupported("a translation to nothing", value.dump());
  return read;
}

}  // namespace penstock::firewall::nftables
