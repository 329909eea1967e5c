// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/iptables_translation.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/ip_address.h"
#include "base/units.h"
#include "conntrack/nat_range.h"
#include "packet/ip.h"

namespace penstock::firewall {

namespace {

using conntrack::NatRange;
using Way = classify::Translation::Way;

/// IPv4: {0, address}
std::optional<Ipv6Address> parse_address(std::string_view text, NetworkLayer family) {
  if (family == NetworkLayer::ipv6) return parse_ipv6(text);
  const auto address = parse_ipv4(text);
  if (!address) return std::nullopt;
  return Ipv6Address{0, address->bits};
}

/// "A" or "A-B"
bool read_addresses(std::string_view text, NetworkLayer family, NatRange& range) {
  const std::size_t dash = text.find('-');
  const auto first = parse_address(text.substr(0, dash), family);
  const auto last = dash == std::string_view::npos ? first : parse_address(text.substr(dash + 1), family);
  if (!first || !last || *last < *first) return false;
  range.first_address = *first;
  range.last_address = *last;
  range.flags |= NatRange::kAddresses;
  return true;
}

/// "80" or "80-90", or, if it may be shifted, "80-90/8000": port 8000 becomes 80, and so on
bool read_ports(std::string_view text, NatRange& range, bool may_shift = false) {
  if (const std::size_t slash = text.find('/'); may_shift && slash != std::string_view::npos) {
    const auto base = parse_integer(text.substr(slash + 1));
    text = text.substr(0, slash);
    if (!base || *base == 0 || *base > 0xffff || text.find('-') == std::string_view::npos) return false;
    range.base_port = static_cast<std::uint16_t>(*base);
    range.flags |= NatRange::kOffset;
  }
  const std::size_t dash = text.find('-');
  const auto first = parse_integer(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_integer(text.substr(dash + 1));
  if (!first || !last || *last > 0xffff || *last < *first) return false;
  range.first_port = static_cast<std::uint16_t>(*first);
  range.last_port = static_cast<std::uint16_t>(*last);
  range.flags |= NatRange::kPorts;
  return true;
}

/// Addresses, ports or both. With ports, IPv6 addresses are in brackets.
bool read_ends(std::string_view text, NetworkLayer family, bool may_shift, NatRange& range) {
  std::string_view addresses = text, ports;
  if (text.starts_with('[')) {
    const std::size_t end = text.rfind(']');
    if (end == std::string_view::npos) return false;
    addresses = text.substr(1, end - 1);
    ports = text.substr(end + 1);
    if (!ports.empty() && !ports.starts_with(':')) return false;
    if (!ports.empty()) ports.remove_prefix(1);
  } else if (const std::size_t colon = text.find(':');
             colon != std::string_view::npos && (family == NetworkLayer::ipv4 || colon == 0)) {
    addresses = text.substr(0, colon);
    ports = text.substr(colon + 1);
    if (ports.empty()) return false;
  }
  if (addresses.empty() && ports.empty()) return false;
  return (addresses.empty() || read_addresses(addresses, family, range)) &&
         (ports.empty() || read_ports(ports, range, may_shift));
}

bool read_prefix(std::string_view text, NetworkLayer family, NatRange& range) {
  const unsigned bits = family == NetworkLayer::ipv6 ? 128 : 32;
  const std::size_t slash = text.find('/');
  const auto length = slash == std::string_view::npos ? bits : parse_integer(text.substr(slash + 1));
  const auto address = parse_address(text.substr(0, slash), family);
  if (!address || !length || *length > bits) return false;
  const Ipv6Address mask = ipv6_mask(128 - bits + static_cast<unsigned>(*length));
  range.first_address = {address->high & mask.high, address->low & mask.low};
  range.last_address = {address->high | ~mask.high, address->low | ~mask.low};
  range.flags |= NatRange::kAddresses | NatRange::kNetmap;
  return true;
}

}  // namespace

const TranslationTarget* translation_target(std::string_view name) noexcept {
  constexpr std::uint8_t kRandom = NatRange::kRandom, kFullyRandom = NatRange::kFullyRandom,
                         kPersistent = NatRange::kPersistent;
  static constexpr std::array<TranslationTarget, 5> kTargets{
      {{"DNAT", Way::destination, "--to-destination", true, kRandom | kPersistent},
       {"SNAT", Way::source, "--to-source", true, kRandom | kFullyRandom | kPersistent},
       {"MASQUERADE", Way::masquerade, "--to-ports", false, kRandom | kFullyRandom},
       {"REDIRECT", Way::redirect, "--to-ports", false, kRandom},
       {"NETMAP", Way::destination, "--to", true, 0}}};
  const auto* const found = std::ranges::find(kTargets, name, &TranslationTarget::name);
  return found == kTargets.end() ? nullptr : found;
}

std::uint8_t translation_flag(std::string_view option) noexcept {
  return option == "--random"         ? NatRange::kRandom
         : option == "--random-fully" ? NatRange::kFullyRandom
         : option == "--persistent"   ? NatRange::kPersistent
                                      : std::uint8_t{0};
}

bool may_translate_ports(std::uint8_t protocol) noexcept {
  constexpr std::uint8_t kDccp = 33;
  constexpr std::array kProtocols{ip_protocol::kTcp, ip_protocol::kUdp, ip_protocol::kSctp, kDccp, ip_protocol::kIcmp};
  return std::ranges::find(kProtocols, protocol) != kProtocols.end();
}

bool read_translation_value(std::string_view option, std::string_view value, NetworkLayer family,
                            classify::Translation& translation) {
  if (option == "--to-ports") return read_ports(value, translation.range);
  if (option == "--to") return read_prefix(value, family, translation.range);
  return read_ends(value, family, option == "--to-destination", translation.range);
}

}  // namespace penstock::firewall
