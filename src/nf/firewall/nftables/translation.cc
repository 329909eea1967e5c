// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nftables/translation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/ip_address.h"
#include "base/units.h"
#include "conntrack/nat_range.h"
#include "nf/firewall/nftables/text.h"

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
    return unsupported("this address is not supported", in_words(value), "an address, a range or a prefix");
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
    return unsupported("this port is not supported", in_words(value), "a port or a range");
  range.flags |= NatRange::kPorts;
  range.first_port = first.get<std::uint16_t>();
  range.last_port = last.get<std::uint16_t>();
  return {};
}

Checked<void> read_flags(const Json& value, NatRange& range) {
  const Json list = value.is_array() ? value : Json::array({value});
  for (const Json& flag : list) {
    const auto* const name = flag.get_ptr<const std::string*>();
    const auto is_meant = [&](const auto& known) { return name != nullptr && *name == known.first; };
    const auto known = std::ranges::find_if(kFlags, is_meant);
    if (known == kFlags.end()) return unsupported("this flag is not supported", in_words(flag));
    range.flags |= known->second;
  }
  return {};
}

/// The map that gives a part, {"map": {…}}, or null.
const Json* map_of(const Json& part) {
  return part.is_object() && part.size() == 1 && part.contains("map") ? &part["map"] : nullptr;
}

/// 8080 and {"range": [1024, 2048]}, but not {"range": ["10.0.0.1", "10.0.0.9"]}.
bool has_ports(const Json& value) {
  if (!value.is_object() || !value.contains("range")) return value.is_number();
  const Json& ends = value["range"];
  return ends.is_array() && !ends.empty() && ends[0].is_number();
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
    if (const Json* const map = map_of(part); map != nullptr && (member == "addr" || member == "port")) {
      if (read.map != nullptr) return unsupported("two maps in a translation are not supported");
      read.map = map;
      read.mapped = member == "addr" ? "addr" : "port";
    } else if (member == "addr") {
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
  if (range.has(NatRange::kNetmap) && !has_prefix && read.mapped != "addr")
    return unsupported("netmap needs a prefix", value.contains("addr") ? in_words(value["addr"]) : "");
  const bool to_addresses = read.translation.way == Way::source || read.translation.way == Way::destination;
  if (to_addresses && !range.has(NatRange::kAddresses) && !range.has(NatRange::kPorts) && read.map == nullptr)
    return unsupported("a translation to nothing", "");
  return read;
}

Checked<ReadTranslation> read_mapped(const Json& value) {
  ReadTranslation read;
  const auto concat = value.is_object() && value.size() == 1 ? value.find("concat") : value.end();
  if (!value.is_object() || concat == value.end()) {
    auto done = has_ports(value) ? read_ports(value, read.translation.range) : read_addresses(value, read);
    if (!done) return tl::unexpected(std::move(done.error()));
    return read;
  }
  if (!concat->is_array() || concat->size() != 2)
    return unsupported("this value of a map is not supported", in_words(value), "an address and a port");
  if (auto done = read_addresses((*concat)[0], read); !done) return within(".concat[0]", std::move(done.error()));
  if (auto done = read_ports((*concat)[1], read.translation.range); !done)
    return within(".concat[1]", std::move(done.error()));
  return read;
}

bool is_type_of_translations(const Json& type) {
  if (!type.is_string()) return false;
  std::string_view name = type.get_ref<const std::string&>();
  constexpr std::string_view kInterval = "interval ";  // newer versions of nft
  if (name.starts_with(kInterval)) name.remove_prefix(kInterval.size());
  constexpr std::array<std::string_view, 5> kTypes{"ipv4_addr", "ipv6_addr", "inet_service", "ipv4_addr . inet_service",
                                                   "ipv6_addr . inet_service"};
  return std::ranges::find(kTypes, name) != kTypes.end();
}

Checked<classify::Translation> with_mapped(const ReadTranslation& rest, const classify::Translation& mapped) {
  classify::Translation whole = rest.translation;
  NatRange& range = whole.range;
  const NatRange& more = mapped.range;
  const bool fits = rest.mapped == "addr" ? more.has(NatRange::kAddresses)
                                          : more.has(NatRange::kPorts) && !more.has(NatRange::kAddresses);
  if (!fits || (range.flags & more.flags) != 0) {
    return unsupported("a value of the map that is not supported here", "",
                       rest.mapped == "addr" ? "addresses, and ports only if the rule has none" : "ports");
  }
  if (more.has(NatRange::kAddresses)) {
    range.first_address = more.first_address;
    range.last_address = more.last_address;
  }
  if (more.has(NatRange::kPorts)) {
    range.first_port = more.first_port;
    range.last_port = more.last_port;
  }
  range.flags |= more.flags;
  return whole;
}

std::string text_of(const NatRange& range, NetworkLayer family) {
  const auto address = [&](const Ipv6Address& bits) {
    return family == NetworkLayer::ipv4 ? to_string(Ipv4Address{static_cast<std::uint32_t>(bits.low)})
                                        : to_string(bits);
  };
  std::string text;
  if (range.has(NatRange::kAddresses)) {
    text = address(range.first_address);
    if (range.last_address != range.first_address) text += "-" + address(range.last_address);
    if (family == NetworkLayer::ipv6 && range.has(NatRange::kPorts)) text = "[" + text + "]";
  }
  if (range.has(NatRange::kPorts)) {
    text += fmt::format(":{}", range.first_port);
    if (range.last_port != range.first_port) text += fmt::format("-{}", range.last_port);
  }
  return text;
}

}  // namespace penstock::firewall::nftables
