// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "function/port_addresses.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/host_address.h"
#include "base/text_file.h"

namespace penstock::function {

std::optional<Ipv4Address> PortAddresses::broadcast() const noexcept {
  if (!ipv4 || ipv4_bits.value_or(32) >= 31) return std::nullopt;
  return Ipv4Address{ipv4->bits | ~ipv4_mask(*ipv4_bits)};
}

std::optional<Ipv6Address> PortAddresses::subnet_anycast() const noexcept {
  if (!ipv6 || ipv6_bits.value_or(128) >= 127) return std::nullopt;
  const Ipv6Address mask = ipv6_mask(*ipv6_bits);
  return Ipv6Address{ipv6->high & mask.high, ipv6->low & mask.low};
}

ParsedAddress parse_port_address(std::string_view text) noexcept {
  const std::size_t slash = text.find('/');
  ParsedAddress parsed;
  PortAddresses& address = parsed.address;
  address.ipv4 = parse_ipv4(text.substr(0, slash));
  address.ipv6 = parse_ipv6(text.substr(0, slash));
  if (slash == std::string_view::npos || !address.any()) return parsed;
  const auto bits = parse_integer(text.substr(slash + 1));
  parsed.has_wrong_length = !bits || *bits == 0 || *bits > (address.ipv4 ? 32 : 128);
  if (!parsed.has_wrong_length)
    (address.ipv4 ? address.ipv4_bits : address.ipv6_bits) = static_cast<std::uint8_t>(*bits);
  return parsed;
}

Result<std::vector<PortAddresses>> read_port_addresses(const Parameters& parameters, std::string_view name,
                                                       const NfContext& context) {
  std::vector<PortAddresses> addresses(context.ports.size());
  Errors errors;
  static const std::vector<std::string> kNone;
  const std::vector<std::string>& given = parameters.has(name) ? parameters.texts(name) : kNone;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::size_t equals = given[i].find('=');
    const std::string_view port_name = std::string_view(given[i]).substr(0, equals);
    const auto port = std::ranges::find(context.ports, port_name);
    if (port == context.ports.end()) {
      errors.push_back({parameters.place(name, i), "unknown port", in_quotes(port_name), "a port of the chain"});
      continue;
    }
    PortAddresses& of_port = addresses[static_cast<std::size_t>(port - context.ports.begin())];
    for (const std::string_view text : split(std::string_view(given[i]).substr(equals + 1), ' ')) {
      const auto [one, has_wrong_length] = parse_port_address(text);
      if (has_wrong_length) {
        errors.push_back({parameters.place(name, i), "wrong prefix length of an address", in_quotes(text),
                          fmt::format("a length from 1 to {}", one.ipv4 ? 32 : 128)});
      } else if ((one.ipv4 && !is_of_a_host(*one.ipv4)) || (one.ipv6 && !is_of_a_host(*one.ipv6))) {
        errors.push_back({parameters.place(name, i), "not an address of a host", in_quotes(text), ""});
      } else if (one.ipv4 && !of_port.ipv4) {
        of_port.ipv4 = one.ipv4;
        of_port.ipv4_bits = one.ipv4_bits;
      } else if (one.ipv6 && !of_port.ipv6) {
        of_port.ipv6 = one.ipv6;
        of_port.ipv6_bits = one.ipv6_bits;
      } else {
        errors.push_back(
            {parameters.place(name, i), "wrong addresses", in_quotes(text),
             "one IPv4 address, one IPv6 address, or both with a space between them, such as 203.0.113.5/24"});
      }
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return addresses;
}

}  // namespace penstock::function
